"""The table of functions, with the kinds of parameters that their names do not determine."""

from __future__ import annotations

__all__ = ["METHODS", "NOT_CALLED", "OPERATORS", "PARAMETERS"]

#: By function, ``parameter=kind`` in the order of drawing (others come last, in the order of the
#: signature). A kind is a function of ``kinds``, or values separated by ``|``.
PARAMETERS: dict[str, str] = {
    # arithmetic, comparison
    "where": "condition=mask_first x=like y=like",
    "clip": "x=array min=bound max=bound",
    "isclose": "rtol=tolerance atol=tolerance",
    "real_if_close": "tol=positive",
    "angle": "z=array deg=flag",
    "ldexp": "x=array y=small_integers",
    "nan_to_num": "nan=scalar posinf=scalar neginf=scalar",
    "float_power": "x=array y=like",
    "allclose": "a=array b=like",
    # selection
    "choose": "a=index_first choices=chosen_from mode=raise|wrap|clip",
    "compress": "x=array axis=axis condition=flags_along",
    "extract": "x=array condition=same",
    "select": "condlist=masks choicelist=choices default=scalar",
    "take": "x=array axis=axis indices=indices mode=raise|wrap|clip",
    "take_along_axis": "x=at_least_one axis=axis indices=indices_along",
    "put_along_axis": "x=at_least_one axis=axis indices=indices_along values=put_values",
    "digitize": "x=real bins=edges right=flag",
    "lexsort": "keys=keys axis=axis",
    "searchsorted": "x=sorted_vector values=like side=left|right sorter=sorter",
    "argpartition": "x=at_least_one axis=axis_or_none kth=nth",
    "partition": "x=at_least_one axis=axis_or_none kth=nth",
    "sort": "axis=axis_or_none",
    "argsort": "axis=axis_or_none",
    # sets
    "intersect1d": "x=array y=array",
    "isin": "x=array values=array",
    "setdiff1d": "x=array y=array",
    "setxor1d": "x=array y=array",
    "union1d": "x=array y=array",
    "unique": "axis=axis_or_none",
    # differences, polynomials, interpolation
    "diff": "n=order axis=axis prepend=zero_d append=zero_d",
    "ediff1d": "to_end=zero_d to_begin=zero_d",
    "gradient": "x=at_least_one axis=axes varargs=spacings edge_order=order",
    "unwrap": "p=at_least_one discont=step axis=axis period=period",
    "poly": "seq_of_zeros=filled_vector",
    "polyfit": "x=points y=points_of_fit deg=order rcond=cutoff w=points_of_fit",
    "roots": "p=vector",
    "interp": "x=real xp=points fp=points_too left=scalar right=scalar period=period",
    "trapezoid": "y=at_least_one axis=axis x=dx_points dx=step",
    "polyder": "p=vector m=order",
    "polyint": "p=vector m=order k=scalar",
    "polydiv": "u=vector v=filled_vector",
    "polyval": "p=vector x=array",
    "vander": "x=vector N=count",
    "convolve": "a=vector v=vector mode=full|same|valid",
    "correlate": "a=vector v=vector mode=full|same|valid",
    # products
    "trace": "x=at_least_two axis1=axis axis2=other_axis",
    "matmul": "x=at_least_one y=factor",
    "linalg.matmul": "x=at_least_one y=factor",
    "cross": "a=of_threes b=of_threes_too axisa=axis axisb=axis axisc=axis axis=axis",
    "linalg.cross": "a=of_threes b=of_threes_too axis=axis",
    "dot": "x=array y=dotted",
    "inner": "a=array b=inner",
    "kron": "a=array b=array",
    "matvec": "x1=at_least_two x2=same_vector",
    "vecmat": "x1=at_least_one x2=vecmat_matrix",
    "vecdot": "x1=at_least_one x2=inner axis=axis",
    "linalg.vecdot": "x1=at_least_one x2=inner axis=axis",
    "vdot": "a=array b=same",
    "outer": "x=array y=array",
    "linalg.outer": "x=vector y=vector",
    "tensordot": "x=array y=tensordot_other axes=tensordot_axes",
    "linalg.tensordot": "x=array y=tensordot_other axes=tensordot_axes",
    "einsum": "subscripts=einsum_call operands=einsum_operands optimize=flag",
    # reductions
    **dict.fromkeys(
        "cumsum cumprod nancumsum nancumprod cumulative_sum cumulative_prod argmax argmin "
        "nanargmax nanargmin".split(),
        "x=array axis=axis_or_none",
    ),
    **{
        name: f"q={kind} method={methods}"
        for name, kind in {
            "quantile": "probability",
            "nanquantile": "probability",
            "percentile": "percent",
            "nanpercentile": "percent",
        }.items()
        for methods in [
            "linear|lower|higher|midpoint|nearest|hazen|weibull|median_unbiased|inverted_cdf|"
            "averaged_inverted_cdf|closest_observation|interpolated_inverted_cdf|normal_unbiased"
        ]
    },
    "average": "axis=axes weights=weights",
    "cov": "m=at_most_two y=like fweights=frequency_weights aweights=analytic_weights",
    "corrcoef": "x=at_most_two y=like",
    "bincount": "x=counts weights=count_weights minlength=count",
    "histogram": "x=finite_real bins=bins range=range density=flag weights=same",
    "histogram_bin_edges": "x=finite_real bins=bins range=range weights=same",
    # shapes
    "apply_along_axis": "func1d=function_along x=at_least_one axis=axis args=nothing",
    "piecewise": "x=array condlist=conditions funclist=function_list args=nothing",
    "atleast_1d": "arrays=several",
    "atleast_2d": "arrays=several",
    "atleast_3d": "arrays=several",
    "broadcast_arrays": "arrays=several",
    "meshgrid": "arrays=vectors indexing=xy|ij",
    "broadcast_shapes": "shapes=shapes",
    "broadcast_to": "x=array shape=wide",
    "eye": "n=count m=count",
    "diag_indices": "n=count ndim=count",
    "fill_diagonal": "x=at_least_two val=filling wrap=flag",
    "indices": "dimensions=shape",
    "ix_": "args=vectors",
    "full": "fill_value=zero_d",
    "full_like": "fill_value=scalar",
    "diag": "v=at_most_two",
    "diagonal": "x=at_least_two axis1=axis axis2=other_axis",
    "linalg.diagonal": "x=at_least_two",
    "tril": "x=at_least_two",
    "triu": "x=at_least_two",
    "append": "x=array axis=axis_or_none values=like",
    "delete": "x=at_least_one axis=axis_or_none obj=edited",
    "insert": "x=at_least_one axis=axis_or_none obj=edited values=scalar",
    "resize": "new_shape=shape",
    "tril_indices": "n=count m=count",
    "triu_indices": "n=count m=count",
    "trim_zeros": "filt=array trim=fb|f|b axis=axes",
    "block": "arrays=nested",
    "column_stack": "arrays=columns",
    "dstack": "arrays=columns",
    "hstack": "arrays=columns",
    "vstack": "arrays=columns",
    "concat": "arrays=arrays_but_one_axis axis=axis_of_arrays",
    "concatenate": "arrays=arrays_but_one_axis axis=axis_of_arrays",
    "stack": "arrays=arrays axis=axis",
    "pad": (
        "pad_width=widths mode=constant|edge|reflect|symmetric|wrap|linear_ramp|maximum|mean|"
        "median|minimum|empty constant_values=scalar end_values=scalar stat_length=positive "
        "reflect_type=even|odd"
    ),
    "array": "object=array ndmin=count",
    "kaiser": "M=count beta=step",
    "arange": "start=scalar stop=scalar step=scalar",
    "linspace": "start=zero_d stop=zero_d axis=axis",
    "geomspace": "start=zero_d stop=zero_d axis=axis",
    "logspace": "start=zero_d stop=zero_d base=zero_d axis=axis",
    "roll": "x=array axis=axes shift=shifts",
    "rot90": "x=at_least_two axes=two_axes",
    "flipud": "x=at_least_one",
    "fliplr": "x=at_least_two",
    "expand_dims": "axis=new_axes",
    "reshape": "shape=reshaped",
    "squeeze": "axis=size_one_axes",
    "array_split": "x=at_least_one axis=axis indices_or_sections=sections",
    "split": "x=at_least_one axis=axis indices_or_sections=sections",
    "vsplit": "x=at_least_two indices_or_sections=sections",
    "hsplit": "x=at_least_one indices_or_sections=sections",
    "dsplit": "x=at_least_three indices_or_sections=sections",
    "unstack": "x=at_least_one axis=axis",
    "repeat": "x=array axis=axis_or_none repeats=repeats",
    "tile": "reps=reps",
    "moveaxis": "source=moved destination=moved",
    "permute_dims": "axes=permutation",
    "transpose": "axes=permutation",
    "rollaxis": "axis=axis start=small",
    "swapaxes": "axis1=axis axis2=axis",
    # numbers and dtypes
    "Tensor.dot": "self=array other=dotted",
    "Tensor.item": "self=array index=item_index",
    "Tensor.diagonal": "self=at_least_two axis1=axis axis2=other_axis",
    "Tensor.trace": "self=at_least_two axis1=axis axis2=other_axis",
    "Tensor.choose": "self=index_first choices=chosen_from mode=raise|wrap|clip",
    "asarray": "obj=array",
    "astype": "dtype=dtype",
    "can_cast": "from_=dtype to=dtype casting=safe|same_kind|unsafe|no|equiv",
    # linear algebra
    "linalg.cholesky": "x=symmetric",
    "linalg.cond": "x=square p=norm_order",
    "linalg.det": "x=square",
    "linalg.eig": "a=square",
    "linalg.eigh": "a=symmetric UPLO=L|U",
    "linalg.eigvals": "a=square",
    "linalg.eigvalsh": "a=symmetric UPLO=L|U",
    "linalg.inv": "x=square",
    "linalg.lstsq": "a=plain_matrix b=right_side_rows rcond=cutoff",
    "linalg.matrix_norm": "x=matrix ord=norm_order",
    "linalg.matrix_power": "a=square n=small",
    "linalg.matrix_rank": "A=matrix tol=tolerance",
    "linalg.multi_dot": "arrays=chain",
    "linalg.norm": "ord=norm_order",
    "linalg.pinv": "a=matrix rcond=cutoff",
    "linalg.qr": "a=matrix mode=reduced|complete|r|raw",
    "linalg.slogdet": "x=square",
    "linalg.solve": "a=square b=right_side",
    "linalg.svd": "a=matrix",
    "linalg.svdvals": "x=matrix",
    "linalg.tensorinv": "x=tensor_to_invert ind=halves",
    "linalg.tensorsolve": "a=tensor_to_invert b=tensor_side axes=axes",
    "linalg.trace": "x=at_least_two",
    "linalg.vector_norm": "ord=vector_order",
    # Fourier transforms
    **{
        f"fft.{name}": "a=transformed n=positive axis=axis"
        for name in "fft ifft rfft irfft hfft ihfft".split()
    },
    **{
        f"fft.{name}": "a=transformed_two axes=two_axes s=lengths"
        for name in "fft2 ifft2 rfft2 irfft2".split()
    },
    **{
        f"fft.{name}": "a=transformed axes=axes s=lengths"
        for name in "fftn ifftn rfftn irfftn".split()
    },
    "fft.fftfreq": "d=step",
    "fft.rfftfreq": "d=step",
    "fft.fftshift": "axes=axes",
    "fft.ifftshift": "axes=axes",
}

#: Methods of arrays with the same arguments as the function of their name, except for the array.
METHODS = (
    "all any argmax argmin argsort astype choose clip compress conj conjugate copy cumprod cumsum "
    "diagonal dot flatten item max mean min nonzero prod ravel repeat reshape round searchsorted "
    "squeeze std sum swapaxes take tolist trace transpose var"
).split()

#: Python's operators on ``{0}`` and ``{1}``.
OPERATORS = {
    **{
        f"{{0}} {sign} {{1}}": "array like"
        for sign in "+ - * / // % ** & | ^ << >> < <= > >= == !=".split()
    },
    "{0} @ {1}": "at_least_one factor",
    "-{0}": "array",
    "+{0}": "array",
    "~{0}": "array",
    "abs({0})": "array",
    "divmod({0}, {1})": "array like",
    "{1} in {0}": "array scalar",
    "{0}[{1}]": "array index",
    "len({0})": "array",
    "bool({0})": "array",
    "float({0})": "array",
    "int({0})": "array",
    "complex({0})": "array",
    "{0}.T": "array",
    "{0}.mT": "array",
    "{0}.real": "array",
    "{0}.imag": "array",
    "{0}.shape": "array",
    "{0}.ndim": "array",
    "{0}.size": "array",
    "{0}.nbytes": "array",
    "{0}.itemsize": "array",
    "list({0})": "array",
}

#: Public names of NumPy that are not called, with the reason.
NOT_CALLED = {
    **dict.fromkeys(
        (
            "random.choice random.exponential random.gamma random.normal random.permutation "
            "random.randint random.shuffle random.uniform random.Generator"
        ).split(),
        "it draws its own numbers: tests/plugins/test_random.py",
    ),
    "load": "gradtape has its own files: tests/saving",
    "save": "gradtape has its own files: tests/saving",
    "empty": "its values are uninitialised memory",
    "empty_like": "its values are uninitialised memory",
    "from_dlpack": "it takes other libraries' arrays: tests/core/test_numpy_protocols.py",
    "__array_namespace_info__": "it describes gradtape: tests/core/test_standard.py",
}
