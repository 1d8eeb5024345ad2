"""gradtape: automatic differentiation with plugins, and models saved with their gradients.

>>> import gradtape as gt
>>> x = gt.constant(3.0)
>>> with gt.GradientTape() as tape:
...     tape.watch(x)
...     y = x * x
>>> tape.gradient(y, x).item()
6.0
"""

from __future__ import annotations

import os as _os

from .core import errors as _errors
from .public import publish, publish_lazily

# A checkout has some packages one level down, where setup.py finds them. Python looks there, too:
# a checkout can be imported as it stands.
__path__ += [
    _path
    for _name in ("namespaces", "extras")
    if _os.path.isdir(_path := _os.path.join(__path__[0], _name))
]

__version__ = "0.1.0"

# All names directly under `gradtape`, by the modules that define them. A name is imported at its
# first use, so that `import gradtape` stays fast. Type checkers read __init__.pyi, which
# docs/make_api.py writes from this table.
_TABLE = {
    ".": (
        "autograph compat data datasets debug distributed errors export fft image interop layers "
        "linalg mixed_precision nn ops plot plugin profiler random saving sklearn special testing "
        "training"
    ),
    ".cli.doctor": "show_versions",
    ".core.base.array_types": "TensorSpec",
    ".core.base.context": "init_scope",
    ".core.base.dtypes": "default_dtype set_default_dtype",
    ".core.functions.custom_gradients": "custom_gradient register_gradient",
    ".core.functions.function": "function",
    ".core.functions.recompute": "recompute_grad",
    ".core.graphs.executors": "executor",
    ".core.module.module": "Module",
    ".core.ops.dispatch": "backend",
    ".core.registry.hookspecs": "hookimpl",
    ".core.registry.host": (
        "disable_plugin order_plugins register_plugin registry unregister_plugin"
    ),
    ".core.tape.backward": "UnconnectedGradients",
    ".core.tape.tape": "GradientTape",
    ".core.tensors.array_api": (
        "__array_api_version__ __array_namespace_info__ array asarray astype bool "
        "broadcast_shapes can_cast complex128 complex64 e empty empty_like finfo float16 float32 "
        "float64 from_dlpack iinfo inf int16 int32 int64 int8 isdtype nan newaxis pi result_type "
        "uint16 uint32 uint64 uint8"
    ),
    ".core.tensors.convert": "as_tensor constant",
    ".core.tensors.numpy_functions": "ndim shape size",
    ".core.tensors.tensor": "Tensor",
    ".core.tensors.variable": "Variable",
    ".core.transforms.forward": "ForwardAccumulator register_jvp",
    ".core.transforms.functional": "flatten grad hvp jvp linearize value_and_grad vjp",
    ".core.transforms.jacobians": "hessian jacfwd jacobian jacrev",
    ".core.transforms.vmap": "vmap",
    ".layers.model": "Input Model",
    ".plugins.numpy.backend": "limit_threads",
    ".plugins.ops.analysis.covariance": "average corrcoef cov",
    ".plugins.ops.analysis.curve_fitting": "interp poly polyfit roots trapezoid",
    ".plugins.ops.analysis.differences": "diff ediff1d gradient unwrap",
    ".plugins.ops.analysis.histograms": "bincount histogram histogram_bin_edges",
    ".plugins.ops.analysis.nan_quantiles": "nanmedian nanpercentile nanquantile",
    ".plugins.ops.analysis.polynomials": (
        "polyadd polyder polydiv polyint polymul polysub polyval vander"
    ),
    ".plugins.ops.analysis.quantiles": "median percentile quantile",
    ".plugins.ops.analysis.signals": "bartlett blackman convolve correlate hamming hanning kaiser",
    ".plugins.ops.control.conditions": "cond while_loop",
    ".plugins.ops.control.effects": "host_call",
    ".plugins.ops.control.scan": "map scan",
    ".plugins.ops.control.tensor_array": "TensorArray",
    ".plugins.ops.elementwise.arithmetic": (
        "abs absolute add clip divide divmod fabs floor_divide fmax fmin fmod heaviside maximum "
        "minimum mod multiply negative positive reciprocal remainder sign subtract true_divide"
    ),
    ".plugins.ops.elementwise.comparison": (
        "allclose array_equal equal greater greater_equal isclose isfinite isinf isnan isneginf "
        "isposinf less less_equal logical_and logical_not logical_or logical_xor not_equal where"
    ),
    ".plugins.ops.elementwise.conversion": (
        "angle cast conj conjugate copy imag real real_if_close stop_gradient"
    ),
    ".plugins.ops.elementwise.floating_point": (
        "around ceil copysign fix floor frexp ldexp modf nan_to_num nextafter rint round signbit "
        "spacing trunc"
    ),
    ".plugins.ops.elementwise.integers": (
        "bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or "
        "bitwise_right_shift bitwise_xor gcd invert lcm left_shift right_shift"
    ),
    ".plugins.ops.elementwise.powers": (
        "cbrt exp exp2 expm1 float_power log log10 log1p log2 logaddexp logaddexp2 pow power sqrt "
        "square"
    ),
    ".plugins.ops.elementwise.special": "digamma erf erfc i0 lgamma polygamma sinc",
    ".plugins.ops.elementwise.trigonometry": (
        "acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 "
        "atanh cos cosh deg2rad degrees hypot rad2deg radians sin sinh tan tanh"
    ),
    ".plugins.ops.indexing.selection": (
        "argwhere choose compress dynamic_partition dynamic_stitch extract flatnonzero nonzero "
        "select"
    ),
    ".plugins.ops.indexing.sets": (
        "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts "
        "unique_inverse unique_values"
    ),
    ".plugins.ops.indexing.sorting": (
        "argpartition argsort digitize lexsort partition searchsorted sort"
    ),
    ".plugins.ops.indexing.take": "gather put_along_axis take take_along_axis",
    ".plugins.ops.indexing.writable": "writable",
    ".plugins.ops.linalg.contractions": "einsum tensordot",
    ".plugins.ops.linalg.determinants": "trace",
    ".plugins.ops.linalg.matmul": "matmul",
    ".plugins.ops.linalg.norms": "clip_by_norm",
    ".plugins.ops.linalg.products": "cross dot inner kron matvec outer vdot vecdot vecmat",
    ".plugins.ops.network.embeddings": "one_hot",
    ".plugins.ops.reductions.cumulative": (
        "cumprod cumsum cumulative_max cumulative_min cumulative_prod cumulative_sum"
    ),
    ".plugins.ops.reductions.extrema": (
        "amax amin argmax argmin max min nanargmax nanargmin nanmax nanmin ptp"
    ),
    ".plugins.ops.reductions.nan_sums": "nancumprod nancumsum nanmean nanprod nanstd nansum nanvar",
    ".plugins.ops.reductions.sums": "all any count_nonzero logsumexp mean prod sum",
    ".plugins.ops.reductions.variance": "std var",
    ".plugins.ops.shapes.application": "apply_along_axis piecewise",
    ".plugins.ops.shapes.broadcasting": (
        "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to repeat tile"
    ),
    ".plugins.ops.shapes.creation": "eye full full_like identity ones ones_like zeros zeros_like",
    ".plugins.ops.shapes.diagonals": "diag diagflat diagonal fill_diagonal tri tril triu",
    ".plugins.ops.shapes.editing": "append delete insert resize trim_zeros",
    ".plugins.ops.shapes.index_grids": (
        "diag_indices diag_indices_from indices ix_ tril_indices tril_indices_from triu_indices "
        "triu_indices_from"
    ),
    ".plugins.ops.shapes.joining": (
        "block column_stack concat concatenate dstack hstack stack vstack"
    ),
    ".plugins.ops.shapes.padding": "pad",
    ".plugins.ops.shapes.ranges": "arange geomspace linspace logspace meshgrid",
    ".plugins.ops.shapes.rearrangement": (
        "flip fliplr flipud matrix_transpose moveaxis permute_dims roll rollaxis rot90 swapaxes "
        "transpose"
    ),
    ".plugins.ops.shapes.reshaping": "expand_dims ravel reshape squeeze",
    ".plugins.ops.shapes.splitting": "array_split dsplit hsplit split unstack vsplit",
    ".profiler.profile": "profile",
    ".saving": "load load_weights save save_weights",
}


_LATER = dict.fromkeys(
    (".core.functions.", ".core.graphs.", ".core.module.", ".core.transforms."), ".core.later"
)
publish_lazily(_TABLE, wholes={**_LATER, ".core.": ".core.extend", ".plugins.ops.": ".plugins.ops"})
publish(_errors.__name__, f"{__name__}.errors")  # users see errors before importing the module
