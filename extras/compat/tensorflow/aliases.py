"""Names that are gradtape's own objects, or those of another of TensorFlow's namespaces.

Also what to use instead of a name that does not exist here.
"""

from __future__ import annotations

from typing import Any

from ...core.extend import snake_case
from ...image import __all__ as _IMAGE_NAMES  # type: ignore[attr-defined]  # `publish` makes it
from ...layers import activations, constraints, initializers, regularizers
from ...training import callbacks, schedules, summary

__all__ = ["ALIASES", "INSTEAD"]


def _same(names: str, prefix: str = "") -> dict[str, str]:
    """Map names to their objects: the name after a ``:``, or the same name."""
    pairs = (name.partition(":") for name in names.split())
    return {name: prefix + (other or name) for name, _, other in pairs}


def _named(module: Any) -> dict[str, str]:
    """Map the classes of a module of layers, and their snake-case names, as in Keras."""
    path = module.__name__.partition(".")[2]
    base = path.rpartition(".")[2].capitalize()[:-1]
    small = {snake_case(name): f"{path}.{name}" for name in module.__all__ if name != base}
    return small | _same(" ".join(module.__all__), f"{path}.")


# adapted: Keras's functions take arguments that gradtape's do not
_ADAPTED_ACTIVATIONS = frozenset({"leaky_relu", "relu"})
# only under another name in Keras
_RENAMED_ACTIVATIONS = frozenset({"exp"})


def _activations() -> dict[str, str]:
    """Return the activations that are the same in Keras, from the table of layers."""
    left_out = _ADAPTED_ACTIVATIONS | _RENAMED_ACTIVATIONS
    known = {name: name for name in activations.NAMES if name not in left_out}
    return {
        name: op if op == "exp" else f"nn.{op}"
        for name, op in sorted({**known, **activations.OTHER_NAMES, "glu": "glu"}.items())
    }


#: Functions that take a seed are adapted.
_IMAGES = [x for x in _IMAGE_NAMES if x != "resize" and not x.startswith("random_")]

_ELEMENTWISE = {
    **_same(
        "abs acos acosh add asin asinh atan atan2 atanh ceil cos cosh divide equal exp floor "
        "greater greater_equal less less_equal logical_and logical_not logical_or maximum minimum "
        "multiply negative not_equal sign sin sinh sqrt square subtract tan tanh"
    ),
    "floordiv": "floor_divide",
    "floormod": "remainder",
    "mod": "remainder",
    "sigmoid": "nn.sigmoid",
    "truediv": "divide",
}

_OF_IMAGES = "array_to_img img_to_array load_img save_img"

#: By namespace, TensorFlow's names and gradtape's objects.
ALIASES: dict[str, dict[str, str]] = {
    "tf": {
        **_ELEMENTWISE,
        **_same(
            "GradientTape Tensor TensorArray TensorSpec UnconnectedGradients custom_gradient "
            "init_scope recompute_grad"
        ),
        **_same(
            "constant_initializer:Constant ones_initializer:Ones random_normal_initializer:"
            "RandomNormal random_uniform_initializer:RandomUniform zeros_initializer:Zeros",
            "layers.initializers.",
        ),
        **_same("Assert assert_equal assert_greater assert_less assert_rank", "tf.debugging."),
        **_same("as_string", "tf.strings."),
        **_same("RaggedTensor SparseTensor", "data."),
        "enable_eager_execution": "tf.config.nothing",
        "realdiv": "divide",
        **_same(
            "add_n argmax argmin cumsum reduce_all reduce_any reduce_logsumexp reduce_max "
            "reduce_mean reduce_min reduce_prod reduce_sum scalar_mul",
            "tf.math.",
        ),
        **_same("eye matmul norm tensordot", "tf.linalg."),
    },
    "tf.linalg": {"einsum": "tf.einsum", "l2_normalize": "tf.math.l2_normalize"},
    "tf.autograph": {
        **_same("do_not_convert set_loop_options to_code to_graph", "autograph."),
        "set_verbosity": "tf.config.nothing",
    },
    "tf.autograph.experimental": _same("do_not_convert", "tf.autograph."),
    "tf.compat.v1": {
        **_same("enable_eager_execution", "tf."),
        "enable_v2_behavior": "tf.config.nothing",
        "set_random_seed": "random.set_seed",
    },
    "tf.config": dict.fromkeys(
        "set_logical_device_configuration set_soft_device_placement set_visible_devices".split(),
        "tf.config.nothing",
    ),
    "tf.config.experimental": _same(
        "get_visible_devices list_logical_devices list_physical_devices run_functions_eagerly "
        "VirtualDeviceConfiguration:LogicalDeviceConfiguration enable_op_determinism:nothing "
        "set_memory_growth:nothing set_virtual_device_configuration:nothing "
        "set_visible_devices:nothing",
        "tf.config.",
    ),
    "tf.config.optimizer": {"set_jit": "tf.config.nothing"},
    "tf.config.threading": dict.fromkeys(
        "set_inter_op_parallelism_threads set_intra_op_parallelism_threads".split(),
        "tf.config.nothing",
    ),
    "tf.test": _same(
        "gpu_device_name is_built_with_cuda is_built_with_gpu_support is_gpu_available",
        "tf.config.",
    ),
    "tf.data.experimental": _same("AUTOTUNE INFINITE_CARDINALITY UNKNOWN_CARDINALITY", "tf.data."),
    "tf.debugging": {"check_numerics": "tf.debugging.assert_all_finite"},
    "tf.errors": _same(
        "AbortedError:RuntimeError AlreadyExistsError:FileExistsError CancelledError:RuntimeError "
        "DeadlineExceededError:TimeoutError FailedPreconditionError:RuntimeError "
        "InternalError:RuntimeError InvalidArgumentError:ValueError "
        "NotFoundError:FileNotFoundError OpError:Exception OutOfRangeError:StopIteration "
        "PermissionDeniedError:PermissionError ResourceExhaustedError:MemoryError "
        "UnavailableError:ConnectionError UnimplementedError:NotImplementedError "
        "UnknownError:RuntimeError",
        "builtins.",
    )
    | _same("DataLossError:DamagedFile", "saving."),
    "tf.image": {**_same(" ".join(_IMAGES), "image."), "ResizeMethod": "tf.nn.ResizeMethod"},
    "tf.keras.backend": {
        **_same(
            "abs all:reduce_all any:reduce_any arange:range argmax argmin cast "
            "concatenate:concat constant cos cumprod:math.cumprod cumsum equal exp expand_dims "
            "eye gather greater greater_equal identity less less_equal "
            "logsumexp:reduce_logsumexp max:reduce_max maximum mean:reduce_mean "
            "min:reduce_min minimum not_equal one_hot ones ones_like permute_dimensions:transpose "
            "pow print_tensor:identity prod:reduce_prod reshape reverse round shape sign sin size "
            "sqrt square squeeze stack std:math.reduce_std stop_gradient sum:reduce_sum tile "
            "transpose var:math.reduce_variance zeros zeros_like",
            "tf.",
        ),
        **_same(
            "binary_crossentropy categorical_crossentropy sparse_categorical_crossentropy",
            "tf.keras.losses.",
        ),
        **_same("elu hard_sigmoid relu softmax softplus softsign", "tf.keras.activations."),
        **_same(
            "clip:clip_by_value conv1d:nn.conv1d conv2d:nn.conv2d dropout:nn.dropout "
            "l2_normalize:math.l2_normalize log:math.log sigmoid switch:where "
            "tanh",
            "tf.",
        ),
        **_same("random_normal:normal random_uniform:uniform truncated_normal", "tf.random."),
        "eval": "tf.keras.backend.get_value",
        "flatten": "ravel",
        "ndim": "ndim",
    },
    "tf.math": {
        **_same("pow round", "tf."),
        **_ELEMENTWISE,
        **_same("expm1 log log1p logical_xor nextafter reciprocal"),
        "is_finite": "isfinite",
        "is_inf": "isinf",
        "is_nan": "isnan",
        "log_sigmoid": "nn.log_sigmoid",
        "softplus": "nn.softplus",
        "softsign": "nn.softsign",
    },
    "tf.nn": {
        **_same("sigmoid tanh", "nn."),
        "swish": "tf.nn.silu",
        **_same("in_top_k l2_normalize log_softmax softmax top_k zero_fraction", "tf.math."),
    },
    "tf.random": {"set_seed": "random.set_seed"},
    "tf.random.experimental": _same("Generator get_global_generator", "tf.random."),
    "tf.summary": _same(" ".join(summary.__all__), "training.summary."),
    "tf.sparse": _same("SparseTensor", "data."),
    "tf.autodiff": _same("ForwardAccumulator"),
    "tf.keras": {
        "Initializer": "tf.keras.initializers.Initializer",
        "Loss": "tf.keras.losses.Loss",
        "Metric": "tf.keras.metrics.Metric",
        "Optimizer": "tf.keras.optimizers.Optimizer",
        "Regularizer": "tf.keras.regularizers.Regularizer",
        "Variable": "tf.Variable",
    },
    "tf.keras.activations": {**_activations(), "serialize": "layers.activations.serialize"},
    "tf.keras.constraints": _named(constraints),
    "tf.keras.initializers": _named(initializers),
    "tf.keras.callbacks": _same(
        " ".join(x for x in callbacks.__all__ if x != "Progbar"), "training.callbacks."
    )
    | _same("History", "training."),
    "tf.keras.metrics": _same(
        "categorical_accuracy sparse_categorical_accuracy sparse_top_k_categorical_accuracy",
        "training.metrics.",
    )
    | _same(
        "MAE MAPE MSE MSLE binary_crossentropy binary_focal_crossentropy categorical_crossentropy "
        "categorical_focal_crossentropy categorical_hinge cosine_similarity hinge kl_divergence "
        "kld log_cosh logcosh mae mape mean_absolute_error mean_absolute_percentage_error "
        "mean_squared_error mean_squared_logarithmic_error mse msle poisson "
        "sparse_categorical_crossentropy squared_hinge",
        "tf.keras.losses.",
    ),
    "tf.keras.models": _same("clone_model", "layers."),
    "tf.keras.preprocessing": {},
    "tf.keras.preprocessing.image": _same(_OF_IMAGES + " ImageDataGenerator", "data."),
    "tf.keras.preprocessing.sequence": _same(
        "TimeseriesGenerator make_sampling_table pad_sequences skipgrams", "data."
    ),
    "tf.keras.preprocessing.text": _same(
        "Tokenizer hashing_trick text_to_word_sequence tokenizer_from_json", "data."
    ),
    "tf.keras.ops": {
        **_same(
            "abs absolute add all allclose amax amin angle any append arange arccos arccosh arcsin "
            "arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort array array_split "
            "average bincount bitwise_and bitwise_invert bitwise_not bitwise_or bitwise_xor "
            "broadcast_to cbrt ceil clip concatenate cond conj conjugate copy corrcoef "
            "correlate cos cosh count_nonzero cross cumprod cumsum custom_gradient deg2rad diag "
            "diagflat diagonal diff digitize divide dot dsplit dstack einsum empty empty_like "
            "equal erf erfc exp exp2 expand_dims expm1 eye flip floor floor_divide fmod full "
            "full_like greater greater_equal heaviside hsplit hstack hypot identity imag inner "
            "isclose isfinite isinf isnan kron less less_equal linspace log log10 log1p log2 "
            "logaddexp logical_and logical_not logical_or logical_xor logspace logsumexp map "
            "matmul max maximum mean median meshgrid min minimum mod moveaxis multiply ndim "
            "negative nonzero not_equal ones ones_like outer pad power prod quantile ravel real "
            "reciprocal repeat reshape roll rot90 round scan searchsorted select shape sign "
            "signbit sin sinc sinh size sort split sqrt square squeeze stack stop_gradient "
            "subtract sum swapaxes take take_along_axis tan tanh tensordot tile trace transpose "
            "trapezoid tri tril triu true_divide trunc vdot vstack where while_loop zeros "
            "zeros_like"
        ),
        **_same(
            "celu elu gelu glu hard_shrink hard_sigmoid hard_silu hard_tanh leaky_relu log_sigmoid "
            "log_softmax relu relu6 selu segment_sum sigmoid silu soft_shrink softmax softplus "
            "softsign squareplus tanh_shrink",
            "nn.",
        ),
        **_same(
            "cholesky det eigh inv lstsq norm qr slogdet solve solve_triangular svd", "linalg."
        ),
        **_same("divide_no_nan in_top_k rsqrt top_k", "tf.math."),
        **_same("cast convert_to_tensor is_tensor slice", "tf."),
        **_same("moments", "tf.nn."),
        "std": "tf.math.reduce_std",
        "vectorized_map": "tf.vectorized_map",
        "swish": "nn.silu",
        "var": "tf.math.reduce_variance",
    },
    "tf.keras.regularizers": _named(regularizers),
    "tf.keras.saving": _same("load_model save_model", "tf.keras.models."),
    "tf.keras.utils": {
        "clear_session": "tf.keras.backend.clear_session",
        "Progbar": "training.Progbar",
        **_same(f"{_OF_IMAGES} PyDataset Sequence:PyDataset pad_sequences", "data."),
    },
    **dict.fromkeys(
        ("tf.keras.optimizers.experimental", "tf.keras.optimizers.legacy"),
        _same(
            "Adadelta Adagrad Adam AdamW Adamax Nadam Optimizer RMSprop SGD", "tf.keras.optimizers."
        ),
    ),
    "tf.keras.optimizers.schedules": _same(" ".join(schedules.__all__), "training.schedules."),
    "tf.keras.mixed_precision": {
        **_same("LossScaleOptimizer Policy", "mixed_precision."),
        "global_policy": "mixed_precision.get_policy",
        "set_global_policy": "mixed_precision.set_policy",
    },
}


# A line begins with a full name, with a namespace and ``*`` for all its missing names, or with the
# last part of a name in any namespace.
_REPLACEMENTS = """
Example: h5py or NumPy's files
Ftrl: Adagrad
Graph: eager code; print(tf.function(f).get_concrete_function(...).graph) shows a trace
Lambda: tf.keras.layers.Activation, which takes any function of a tensor
RemoteMonitor: tf.keras.callbacks.LambdaCallback
Session: eager code: ops run when they are called
bfloat16: float32, or tf.keras.mixed_precision, because NumPy has no bfloat16
crop_and_resize: crop_to_bounding_box and resize
datasets: gradtape.datasets, or arrays that you read
div: tf.divide
executing_eagerly_outside_functions: tf.executing_eagerly
experimental: the name in tf.keras itself
get_variable: tf.Variable
global_variables_initializer: eager code: variables have their values
gradients: gradtape.GradientTape, or gradtape.grad
hessians: gradtape.hessian
list_files: glob.glob(pattern), in a function for tf.data.Dataset.from_generator
mul: tf.multiply
neg: tf.negative
non_max_suppression: NumPy, because it has no gradient
placeholder: arguments of a gradtape.function
tf.keras.saving.*: Model.save and tf.keras.models.load_model; files hold classes as graphs
sub: tf.subtract
tf.app: argparse
tf.autograph.*: tf.cond and tf.while_loop
tf.compat.*: tf.* itself, which has the names of TensorFlow 2 and runs eagerly
tf.compat.v1.*: tf.* itself, which has the names of TensorFlow 2 and runs eagerly
tf.config.*: nothing: options that tune TensorFlow's runtime have no effect here
tf.contrib: tf.keras, or the library that replaced the part of tf.contrib
tf.data.TFRecordDataset: tf.data.Dataset.from_generator, from_hdf5 or from_csv
tf.data.TextLineDataset: tf.data.Dataset.from_generator, with numbers as elements
tf.data.experimental.*: methods of tf.data.Dataset, such as from_csv
tf.debugging.set_log_device_placement: Tensor.device
tf.distribute: gradtape.distributed and fit(distributed=group)
tf.estimator: tf.keras.Model.fit
tf.feature_column: tf.keras.layers on arrays
tf.flags: argparse
tf.image.*: PIL, NumPy and tf.constant(np.asarray(image)) to read and write files
tf.io.decode_image: PIL, and tf.constant(np.asarray(image))
tf.io.decode_jpeg: PIL, and tf.constant(np.asarray(image))
tf.io.decode_png: PIL, and tf.constant(np.asarray(image))
tf.io.gfile: pathlib and open
tf.io.*: Python's open, NumPy or h5py; gradtape.save and gradtape.load for models
tf.keras.applications: tf.keras.layers and gradtape.load_weights, which reads Keras files
tf.keras.backend.function: tf.keras.Model(inputs, outputs)
tf.keras.backend.learning_phase: training=True or False in calls
tf.keras.backend.placeholder: tf.keras.Input
tf.keras.estimator: gradtape.sklearn
tf.keras.preprocessing.*: tf.keras.utils, tf.data.Dataset and tf.image
tf.keras.utils.get_file: urllib.request.urlretrieve to download the file
tf.keras.utils.*: tf.data.Dataset.from_generator for data, or NumPy
tf.linalg.LinearOperator: dense matrices
tf.lookup: a Python dictionary, before you create tensors
tf.ragged.*: methods of tf.RaggedTensor, or tf.data.Dataset.padded_batch
tf.raw_ops: tf.* itself, which has the ops by their public names
tf.sparse.*: tf.sparse.to_dense and dense ops
tf.strings.*: Python's str methods before you create tensors, which hold numbers
tf.summary.*: gradtape.profile, or tf.summary.scalar
tf.sysconfig.*: gradtape doctor on the command line
tf.test.*: unittest or pytest
tf.train.Saver: tf.train.Checkpoint
tf.train.*: tf.keras.optimizers, or h5py for records
to_double: tf.cast(x, tf.float64)
to_float: tf.cast(x, tf.float32)
to_int32: tf.cast(x, tf.int32)
to_int64: tf.cast(x, tf.int64)
"""
#: What to use instead of a name that does not exist here.
INSTEAD: dict[str, str] = {
    name: words for name, _, words in (x.partition(": ") for x in _REPLACEMENTS.strip().split("\n"))
}
