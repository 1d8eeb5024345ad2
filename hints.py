"""Hints: what to write instead of names of NumPy, PyTorch, Keras and JAX that gradtape lacks.

``gt.cat`` and ``model.fit`` raise an ``AttributeError`` that says it. A class gets its hints by
:func:`hinted`, and a plugin adds some with the hook ``gradtape_hints``.
"""

from __future__ import annotations

from typing import Any

from .public import hide_private_names

__all__ = [
    "CLASSES",
    "INSTEAD",
    "Lacking",
    "Unsettable",
    "add",
    "classes",
    "hinted",
    "instead_of",
    "remove",
    "told",
]


class Lacking:
    """An attribute that a class lacks: reading it raises an error that says what to use instead.

    It costs other attributes nothing, unlike ``__getattr__``. A class after ``owner`` in the order
    of inheritance may have the attribute, such as a mixin of a user.
    """

    def __init__(self, owner: type, name: str, instead: str) -> None:
        self.owner, self.name, self.instead = owner, name, instead
        # help() lists the name with the attributes of the class
        self.__doc__ = f"Not in gradtape{told(instead)}."

    def __get__(self, instance: Any, kind: type) -> Any:
        found = self._inherited(kind)
        if found is not self:
            bind = getattr(type(found), "__get__", None)
            return found if bind is None else bind(found, instance, kind)
        raise self._error(instance, kind, self.instead)

    def _inherited(self, kind: type) -> Any:
        """Return the attribute of a class after the owner, or this object."""
        order = kind.__mro__
        for base in order[order.index(self.owner) + 1 :]:
            found = vars(base).get(self.name, self)
            if not isinstance(found, Lacking):
                return found
        return self

    def _error(self, instance: Any, kind: type, instead: str) -> AttributeError:
        who = f"type object {kind.__name__!r}" if instance is None else f"{kind.__name__!r} object"
        # obj is set, because otherwise Python would set it and add its own hint
        return AttributeError(
            f"{who} has no attribute {self.name!r}{told(instead)}",
            obj=kind if instance is None else instance,
        )

    def __repr__(self) -> str:
        return f"<no attribute; use {self.instead}>"


class Unsettable(Lacking):
    """The same of a class whose instances have fixed attributes: setting it says so too.

    Subclasses may have attributes of their own, which are set and read as usual.
    """

    def __init__(self, owner: type, name: str, instead: str, when_set: str) -> None:
        super().__init__(owner, name, instead)
        self.when_set = when_set

    def __get__(self, instance: Any, kind: type) -> Any:
        held = getattr(instance, "__dict__", {})
        return held[self.name] if self.name in held else super().__get__(instance, kind)

    def __set__(self, instance: Any, value: Any) -> None:
        found = self._inherited(type(instance))
        if found is not self and hasattr(type(found), "__set__"):
            type(found).__set__(found, instance, value)
        elif hasattr(instance, "__dict__"):
            vars(instance)[self.name] = value
        else:
            raise self._error(instance, type(instance), self.when_set)

    def __delete__(self, instance: Any) -> None:
        found = self._inherited(type(instance))
        if found is not self and hasattr(type(found), "__delete__"):
            type(found).__delete__(found, instance)
        elif self.name in getattr(instance, "__dict__", {}):
            del vars(instance)[self.name]
        else:
            raise self._error(instance, type(instance), self.when_set)


def hinted(cls: type, place: str) -> None:
    """Give a class hints for names that it lacks, and leave private names out of its ``dir``.

    Parameters
    ----------
    cls
        The class. Its subclasses may have the names.
    place
        Its public path in the package, such as ``"training.Optimizer"``, for hints of plugins.
    """
    hide_private_names(cls)
    _CLASSES[place] = cls
    for name, text in INSTEAD.get(place, {}).items():
        _install(cls, place, name, text)


def classes() -> list[str]:
    """Return the places of the classes that take hints; others become one by :func:`hinted`."""
    return [*CLASSES, *(place for place in _CLASSES if place not in CLASSES)]


def add(place: str, name: str, text: str) -> None:
    """Add a hint, or replace it until :func:`remove` is called."""
    known = INSTEAD.setdefault(place, {})
    if name in known:
        _REPLACED.setdefault((place, name), known[name])
    known[name] = text
    if place in _CLASSES:
        _install(_CLASSES[place], place, name, text)


def _install(cls: type, place: str, name: str, text: str) -> None:
    if name in vars(cls) and not isinstance(vars(cls)[name], Lacking):
        return
    if cls.__dictoffset__:  # attributes of the name may be set, and then are read without this
        setattr(cls, name, Lacking(cls, name, text))
    else:
        when_set = _WHEN_SET.get((place, name), text)
        setattr(cls, name, Unsettable(cls, name, text, when_set))


def remove(place: str, name: str) -> None:
    """Undo :func:`add`."""
    del INSTEAD[place][name]
    cls = _CLASSES.get(place)
    if cls is not None and isinstance(vars(cls).get(name), Lacking):
        delattr(cls, name)
    before = _REPLACED.pop((place, name), None)
    if before is not None:
        add(place, name, before)


def told(instead: str) -> str:
    """Return the end of a message."""
    return f"; {instead}" if instead.startswith("leave it out") else f"; use {instead}"


def instead_of(place: str, name: str) -> str | None:
    """Return what to use instead of a name that a module lacks; other modules' hints count too."""
    modules = (place, *(other for other in INSTEAD if other not in _CLASSES))
    return next((INSTEAD[x][name] for x in modules if name in INSTEAD.get(x, ())), None)


#: The classes with hints, by place.
_CLASSES: dict[str, type] = {}
#: Hints that plugins replaced, by place and name.
_REPLACED: dict[tuple[str, str], str] = {}


_NEW_GRADIENTS = "leave it out: tape.gradient returns new gradients each time"
_NEVER_CHANGES = "an op that returns a new tensor: a tensor never changes; a Variable has assign"


#: What to write instead of setting a name, where that differs from reading it.
_WHEN_SET = {
    ("Tensor", "data"): "gt.Variable, which has assign: a tensor never changes",
    ("Tensor", "grad"): _NEW_GRADIENTS,
}


def _each(table: dict[str, str]) -> dict[str, str]:
    """Return a table with an entry for each name in its keys."""
    return {name: text for names, text in table.items() for name in names.split()}


_ON_DATA = "in a function for gt.data.Dataset.map"
_OWN = "gt.layers.Layer, and write the methods build and call"

#: Layers of Keras.
_KERAS_LAYERS = _each(
    {
        "AbstractRNNCell": "gt.layers.Layer with state_size, output_size and call(x, states)",
        (
            "AugMix AutoContrast CutMix Equalization MixUp Pipeline RandAugment "
            "RandomColorDegeneration RandomColorJitter RandomElasticTransform RandomErasing "
            "RandomGaussianBlur RandomGrayscale RandomHue RandomInvert RandomPerspective "
            "RandomPosterization RandomSaturation RandomSharpness Solarization"
        ): f"gt.image or NumPy, {_ON_DATA}",
        "CategoryEncoding": "gt.one_hot(x, depth), in a gt.layers.Lambda",
        "CenterCrop": f"gt.image.central_crop, {_ON_DATA}",
        "ConvLSTM1D ConvLSTM2D ConvLSTM3D": "gt.layers.Layer, and write its call with gt.scan",
        "CuDNNGRU": "gt.layers.GRU",
        "CuDNNLSTM": "gt.layers.LSTM",
        "Discretization": "gt.digitize(x, bins), in a gt.layers.Lambda",
        "FlaxLayer JaxLayer TorchModuleWrapper": "gt.interop, for functions of JAX and PyTorch",
        "GroupQueryAttention": f"gt.layers.MultiHeadAttention, or {_OWN}",
        "HashedCrossing Hashing": "gt.data.hashing_trick(text, n, hash_function='md5')",
        "InputSpec": "leave it out: a layer refuses other sizes than those of its weights",
        "IntegerLookup StringLookup": (
            "np.unique(x, return_inverse=True), or gt.data.Dataset.from_csv(path, vocabulary=...)"
        ),
        "MelSpectrogram STFTSpectrogram": f"gt.fft.rfft of frames, {_ON_DATA}",
        "RandomBrightness": f"gt.image.random_brightness, {_ON_DATA}",
        "RandomContrast": f"gt.image.random_contrast, {_ON_DATA}",
        "RandomCrop": f"gt.image.random_crop, {_ON_DATA}",
        "RandomFlip": f"gt.image.random_flip_left_right, {_ON_DATA}",
        "RandomRotation RandomShear RandomTranslation RandomZoom": "gt.data.ImageDataGenerator",
        "Resizing": f"gt.image.resize, in a gt.layers.Lambda or {_ON_DATA}",
        "ReversibleEmbedding SpectralNormalization": _OWN,
        "TFSMLayer": "gt.load(path), whose result can be a part of a model",
        "TextVectorization": "gt.data.Tokenizer and gt.data.pad_sequences",
        "ThresholdedReLU": "gt.layers.Lambda(lambda x: gt.where(x > theta, x, 0.0))",
        "Wrapper": "gt.layers.Layer, with the inner layer in an attribute",
    }
)


#: By place, a module or class under its path in the package: names, and what to use instead.
INSTEAD: dict[str, dict[str, str]] = {
    "": {
        "applications": "gt.layers, and gt.load_weights, which reads files of Keras and PyTorch",
        "apply_over_axes": "reductions take several axes, gt.sum(x, axis=(0, 1))",
        "array_equiv": "gt.all(gt.equal(a, b))",
        "asanyarray": "gt.asarray(x)",
        "asmatrix": "gt.asarray(x), a tensor with two axes",
        "bmat": "gt.block",
        "cat": "gt.concat",
        "c_": "gt.column_stack or gt.stack(..., axis=-1)",
        "compile": "gt.function",
        "copyto": "gt.where, or x.at[index].set(values): a tensor never changes",
        "cross_entropy": "gt.nn.sparse_softmax_cross_entropy_with_logits(labels=..., logits=...)",
        "cuda": "gt.backend('cupy')",
        "double": "gt.float64",
        "einsum_path": "np.einsum_path; gt.einsum takes optimize=",
        "errstate": "np.errstate",
        "float": "Python's float, or gt.float32 or gt.float64",
        "float128": "gt.float64, the widest float dtype",
        "frompyfunc": "gt.vmap",
        "Functional": "gt.Model",
        "half": "gt.float16",
        "histogram2d": "np.histogram2d(x.numpy(), y.numpy()); it has no gradient",
        "histogramdd": "np.histogramdd(x.numpy()); it has no gradient",
        "index_exp": "np.index_exp",
        "int": "Python's int, or gt.int32 or gt.int64",
        "iscomplex": "gt.imag(x) != 0",
        "iscomplexobj": "gt.isdtype(x.dtype, 'complex floating')",
        "isreal": "gt.imag(x) == 0",
        "isrealobj": "not gt.isdtype(x.dtype, 'complex floating')",
        "isscalar": "np.isscalar",
        "issubdtype": "gt.isdtype(x.dtype, 'real floating')",
        "jit": "gt.function",
        "keras": "gt.layers, gt.training and gt.Model",
        "load_model": "gt.load(path)",
        "longdouble": "gt.float64, the widest float dtype",
        "mask_indices": "gt.nonzero(mask)",
        "matrix": "gt.asarray(x), a tensor with two axes",
        "mgrid": "gt.meshgrid(..., indexing='ij') or gt.indices",
        "manual_seed": "gt.random.set_seed(seed)",
        "ndarray": "gt.Tensor",
        "no_grad": "code outside of gt.GradientTape, or tape.stop_recording()",
        "no_gradient": "gt.stop_gradient",
        "optim": "gt.training",
        "Parameter": "gt.Variable",
        "tensor": "gt.as_tensor",
        "ndenumerate": "np.ndenumerate(x.numpy())",
        "ndindex": "np.ndindex",
        "nditer": "np.nditer(x.numpy())",
        "object_": "a list: a tensor holds numbers",
        "ogrid": "gt.meshgrid(..., indexing='ij', sparse=True)",
        "place": "gt.where, or x.at[mask].set(values): a tensor never changes",
        "poly1d": "gt.polyval",
        "promote_types": "gt.result_type",
        "put": "x.ravel().at[indices].set(values): a tensor never changes",
        "putmask": "gt.where, or x.at[mask].set(values): a tensor never changes",
        "r_": "gt.concatenate",
        "ravel_multi_index": "np.ravel_multi_index",
        "row_stack": "gt.vstack",
        "s_": "np.s_",
        "savetxt": "np.savetxt(file, x.numpy())",
        "savez": "np.savez(file, x.numpy()); gt.save saves modules",
        "save_model": "gt.save(model, path)",
        "preprocessing": "gt.data for texts and sequences, gt.image for images",
        "seed": "gt.random.set_seed(seed)",
        "set_random_seed": "gt.random.set_seed(seed)",
        "single": "gt.float32",
        "sort_complex": "gt.sort",
        "unravel_index": "np.unravel_index(x.numpy(), shape)",
        "unsqueeze": "gt.expand_dims(x, axis)",
        "vectorize": "gt.vmap",
        "autograd": "gt.GradientTape, or gt.grad",
        "backward": "tape.gradient(loss, variables)",
        "bmm": "gt.matmul(x, y), or x @ y",
        "callbacks": "gt.training, which has the callbacks",
        "checkpoint": "gt.recompute_grad to save memory, or gt.training.Checkpoint to save a run",
        "clamp": "gt.clip(x, min, max)",
        "config": "gt.registry().backends for the backends, or gradtape doctor in a shell",
        "custom_jvp": "gt.custom_gradient, or gt.register_jvp",
        "custom_vjp": "gt.custom_gradient",
        "default_matmul_precision": "gt.mixed_precision.matmul_precision(precision)",
        "device": "gt.backend(name)",
        "device_put": "x.to(where)",
        "enable_grad": "gt.GradientTape",
        "FloatTensor": "gt.constant(values, 'float32')",
        "from_numpy": "gt.constant(array)",
        "get_default_dtype": "gt.default_dtype()",
        "inference_mode": "code outside of gt.GradientTape",
        "initializers": "gt.layers.initializers",
        "inverse": "gt.linalg.inv(x)",
        "is_tensor": "isinstance(x, gt.Tensor)",
        "lax": "gt.scan, gt.cond, gt.while_loop and gt.map",
        "LongTensor": "gt.constant(values, 'int64')",
        "mm": "gt.matmul(x, y), or x @ y",
        "models": "gt.Model and gt.layers.Sequential",
        "numel": "gt.size(x), or x.size",
        "numpy": "gt itself, whose functions have NumPy's names",
        "permute": "gt.transpose(x, axes)",
        "pmap": "gt.distributed",
        "requires_grad": "gt.Variable, or tape.watch(x)",
        "rsqrt": "1 / gt.sqrt(x)",
        "set_float32_matmul_precision": "gt.mixed_precision.set_matmul_precision(precision)",
        "set_grad_enabled": "gt.GradientTape",
        "topk": "gt.sort(x)[..., -k:]",
        "train": "gt.training.fit(model, data)",
        "utils": (
            "gt.one_hot for labels, gt.data for data, gt.training.clip_by_global_norm for gradients"
        ),
        "view": "gt.reshape(x, shape)",
    },
    "layers": {
        "BatchNorm1d": "gt.layers.BatchNorm",
        "BatchNorm2d": "gt.layers.BatchNorm",
        "Linear": "gt.layers.Dense",
        "MultiheadAttention": "gt.layers.MultiHeadAttention",
        "Sigmoid": "gt.layers.Activation('sigmoid')",
        "Softplus": "gt.layers.Activation('softplus')",
        "Tanh": "gt.layers.Activation('tanh')",
        **{
            f"{kind}{n}{letter}": f"gt.layers.{whole}{n}D"
            for n in (1, 2, 3)
            for kind, whole in {"MaxPool": "MaxPooling", "AvgPool": "AveragePooling"}.items()
            for letter in "dD"
        },
        "AdaptiveAvgPool2d": "gt.layers.GlobalAveragePooling2D",
        "BatchNorm3d": "gt.layers.BatchNorm",
        "Dropout2d": "gt.layers.SpatialDropout2D",
        "GroupNorm": "gt.layers.GroupNormalization",
        "InputLayer": "gt.Input(shape)",
        "LayerNorm": "gt.layers.LayerNormalization",
        "ModuleDict": "a dictionary: modules find what is in it",
        "ModuleList": "a list: modules find what is in it",
        "RMSNorm": "gt.layers.RMSNormalization",
        **_KERAS_LAYERS,
    },
    "datasets": _each(
        {
            "boston_housing california_housing cifar10 cifar100 fashion_mnist imdb mnist reuters": (
                "gt.datasets.load_digits(), or arrays that you read: gradtape downloads nothing"
            )
        }
    ),
    "data": {
        "DataLoader": "gt.data.Dataset.from_tensor_slices((x, y)).batch(n)",
        "TensorDataset": "gt.data.Dataset.from_tensor_slices((x, y))",
        "random_split": "dataset.take(n) and dataset.skip(n)",
    },
    "mixed_precision": {
        "global_policy": "gt.mixed_precision.get_policy()",
        "set_global_policy": "gt.mixed_precision.set_policy(policy)",
    },
    "nn": {
        "cross_entropy": "gt.nn.sparse_softmax_cross_entropy_with_logits(labels=..., logits=...)",
        "Linear": "gt.layers.Dense: layers are in gt.layers",
        "functional": "gt.nn itself",
        "init": "gt.layers.initializers",
        "Module": "gt.Module",
        "mse_loss": "gt.training.mean_squared_error(y_true, y_pred)",
        "utils": "gt.training.clip_by_global_norm",
    },
    "training": {
        "BCEWithLogitsLoss": "gt.training.losses.BinaryCrossentropy()",
        "CrossEntropyLoss": "gt.training.losses.SparseCategoricalCrossentropy()",
        "DataLoader": "gt.data.Dataset, or fit(..., batch_size=)",
        "MSELoss": "gt.training.losses.MeanSquaredError()",
        "train": "gt.training.fit",
        "BCELoss": "gt.training.losses.BinaryCrossentropy(from_logits=False)",
        "CosineAnnealingLR": "gt.training.schedules.CosineDecay, as the learning rate",
        "ExponentialDecay": "gt.training.schedules.ExponentialDecay, as the learning rate",
        "ExponentialLR": "gt.training.schedules.ExponentialDecay, as the learning rate",
        "KLDivLoss": "gt.training.losses.KLDivergence()",
        "L1Loss": "gt.training.losses.MeanAbsoluteError()",
        "LambdaLR": "a function of the step, as the learning rate",
        "lr_scheduler": "gt.training.schedules",
        "MultiStepLR": "gt.training.schedules.PiecewiseConstantDecay, as the learning rate",
        "NLLLoss": "gt.training.losses.SparseCategoricalCrossentropy()",
        "OneCycleLR": "gt.training.schedules.OneCycle, as the learning rate",
        "optim": "gt.training itself",
        "SmoothL1Loss": "gt.training.losses.Huber()",
        "CallbackList": "callbacks=[...] of gt.training.fit",
        "Ftrl": "gt.training.Adagrad",
        "OrbaxCheckpoint": "gt.training.BackupAndRestore",
        "RemoteMonitor": "gt.training.LambdaCallback",
        "SwapEMAWeights": "an optimizer with use_ema=True",
        "StepLR": "gt.training.schedules.PiecewiseConstantDecay, as the learning rate",
    },
    "saving": {
        "register_keras_serializable": (
            "leave it out: a file needs no code of the class; where it should name the class, "
            "class Net(gt.Module, saved_as='mine.Net') and the hook gradtape_modules"
        ),
    },
    "random": {
        "default_rng": "gt.random.Generator(seed)",
        "multivariate_normal": "mean + gt.random.normal(shape) @ gt.linalg.cholesky(cov).T",
        "rand": "gt.random.uniform(shape)",
        "randn": "gt.random.normal(shape)",
        "random": "gt.random.uniform(shape)",
        "random_sample": "gt.random.uniform(shape)",
        "seed": "gt.random.set_seed(seed)",
        "standard_normal": "gt.random.normal(shape)",
        "key": "gt.random.Generator(seed)",
        "manual_seed": "gt.random.set_seed(seed)",
        "PRNGKey": "gt.random.Generator(seed)",
        "randperm": "gt.random.permutation(n)",
        "split": "gt.random.Generator(seed): a generator keeps its state, so there are no keys",
    },
    "Tensor": _each(
        {
            "add_ sub_ mul_ div_ pow_ zero_ fill_": _NEVER_CHANGES,
            "copy_ clamp_ exp_ relu_ squeeze_ masked_fill_ scatter_ set_": _NEVER_CHANGES,
            "add": "x + y",
            "sub": "x - y",
            "mul": "x * y",
            "div true_divide": "x / y",
            "pow": "x ** y",
            "neg": "-x",
            "eq": "x == y",
            "ne": "x != y",
            "lt": "x < y",
            "le": "x <= y",
            "gt": "x > y",
            "ge": "x >= y",
            "mm bmm matmul": "x @ y",
            "assign assign_add assign_sub": "gt.Variable: a tensor never changes",
            "backward": (
                "tape.gradient(loss, variables), after the forward pass in a block `with "
                "gt.GradientTape() as tape:`"
            ),
            "block_until_ready": "x.numpy(), which waits for the value",
            "bool": "x.astype('bool')",
            "double": "x.astype('float64')",
            "float": "x.astype('float32')",
            "half": "x.astype('float16')",
            "int": "x.astype('int32')",
            "long": "x.astype('int64')",
            "type type_as": "x.astype(dtype)",
            "chunk split": "gt.split(x, n, axis)",
            "clamp": "x.clip(min, max)",
            "clone contiguous detach_": "x itself: a tensor never changes",
            "cpu": "x.to('numpy'), or x.numpy() for an array",
            "cuda": "x.to('cupy')",
            "data": "x.numpy() for the value, or gt.stop_gradient(x)",
            "tobytes tofile": "x.numpy().tobytes()",
            "detach": "gt.stop_gradient(x)",
            "devices get_device is_cuda": "x.device",
            "dim ndimension": "x.ndim",
            "eval to_numpy": "x.numpy()",
            "expand expand_as": "gt.broadcast_to(x, shape)",
            "gather": "gt.take_along_axis(x, indices, axis)",
            "grad": "tape.gradient(loss, x), which returns the gradient",
            "grad_fn is_leaf retain_grad register_hook": (
                "tape.gradient(loss, x), for any x that the tape saw"
            ),
            "index_add": "x.at[indices].add(values)",
            "index_select": "x.take(indices, axis)",
            "scatter scatter_add": "x.at[index].set(values), or x.at[index].add(values)",
            "masked_fill": "gt.where(mask, value, x)",
            "narrow select": "x[..., start:stop]",
            "nelement numel": "x.size",
            "new_ones new_full new_tensor new_zeros": (
                "gt.ones, gt.full, gt.constant or gt.zeros with dtype=x.dtype"
            ),
            "norm": "gt.linalg.norm(x)",
            "permute": "x.transpose(axes)",
            "requires_grad requires_grad_": "gt.Variable for weights, or tape.watch(x)",
            "reshape_as view view_as unflatten": "x.reshape(shape)",
            "rsqrt": "1 / gt.sqrt(x)",
            "t": "x.T",
            "H adjoint": "gt.conj(x.mT)",
            "topk": "gt.sort(x)[..., -k:]",
            "unbind": "gt.unstack(x, axis)",
            "unsqueeze": "gt.expand_dims(x, axis)",
            "zero_grad": _NEW_GRADIENTS,
            "abs": "gt.abs(x)",
            "ceil": "gt.ceil(x)",
            "cos": "gt.cos(x)",
            "diag": "gt.diag(x)",
            "erf": "gt.erf(x)",
            "exp": "gt.exp(x)",
            "flip": "gt.flip(x)",
            "floor": "gt.floor(x)",
            "isfinite": "gt.isfinite(x)",
            "isinf": "gt.isinf(x)",
            "isnan": "gt.isnan(x)",
            "log": "gt.log(x)",
            "log10": "gt.log10(x)",
            "log1p": "gt.log1p(x)",
            "log2": "gt.log2(x)",
            "logsumexp": "gt.logsumexp(x)",
            "roll": "gt.roll(x)",
            "sign": "gt.sign(x)",
            "sin": "gt.sin(x)",
            "sqrt": "gt.sqrt(x)",
            "square": "gt.square(x)",
            "tan": "gt.tan(x)",
            "tanh": "gt.tanh(x)",
            "tile": "gt.tile(x)",
            "tril": "gt.tril(x)",
            "triu": "gt.triu(x)",
            "gelu": "gt.nn.gelu(x)",
            "log_softmax": "gt.nn.log_softmax(x)",
            "relu": "gt.nn.relu(x)",
            "sigmoid": "gt.nn.sigmoid(x)",
            "softmax": "gt.nn.softmax(x)",
            "softplus": "gt.nn.softplus(x)",
        }
    ),
    "Variable": _each(
        {
            "data": "v.assign(value) to set the value, or v.numpy() to read it",
            "requires_grad requires_grad_": "v.trainable",
            "to": "model.to(where), which moves all variables of a model, or v.value.to(where)",
            "clone contiguous": "v.value, or gt.Variable(v) for another variable",
        }
    ),
    "Module": _each(
        {
            "add": "gt.layers.Sequential(layers), which has add",
            "add_module register_module register_parameter": (
                "an assignment, self.name = ...: modules find variables and modules in attributes"
            ),
            "register_buffer": "self.name = gt.Variable(value, trainable=False)",
            "apply": "a loop over model.submodules",
            "backward": "tape.gradient(loss, model.trainable_variables)",
            "buffers named_buffers weights": "model.variables, or model.named_variables",
            "children modules": "model.submodules",
            "named_children named_modules": "model.named_leaves()",
            "clone copy": "copy.deepcopy(model)",
            "compile": (
                "gt.training.fit(model, data, optimizer=..., loss=..., metrics=...): there is no "
                "separate step"
            ),
            "cpu": "model.to('numpy')",
            "cuda": "model.to('cupy')",
            "bfloat16 double float half": (
                "dtype= of the layers, or gt.mixed_precision.set_policy(policy)"
            ),
            "eval": "model(x, training=False): a call receives the mode",
            "train": (
                "model(x, training=True): a call receives the mode; gt.training.fit trains a model"
            ),
            "evaluate test_on_batch": "gt.training.evaluate(model, (x, y), loss=...)",
            "fit fit_generator train_on_batch": (
                "gt.training.fit(model, (x, y), optimizer=..., loss=...)"
            ),
            "predict predict_on_batch": "gt.training.predict(model, x)",
            "predict_classes": "gt.argmax(gt.training.predict(model, x), axis=-1)",
            "predict_proba": "gt.training.predict(model, x)",
            "export": "gt.export.onnx(model, x, path=path) or gt.export.stablehlo",
            "forward": "model(x): the forward pass is the method __call__, or call in a Layer",
            "get_weights": "[v.numpy() for v in model.variables]",
            "set_weights": "v.assign(value) for each of model.variables",
            "history": "the History that gt.training.fit returns",
            "init": "model(x): the first call builds the layers",
            "layers": "model.submodules",
            "load_state_dict": "model.load_weights(path_or_dictionary)",
            "loss metrics": "the arguments of gt.training.fit: a model does not hold them",
            "optimizer": (
                "the argument of gt.training.fit: a model does not hold it; a callback has "
                "self.optimizer"
            ),
            "losses": "gt.layers.Layer as the base class, which collects losses",
            "non_trainable_variables non_trainable_weights": (
                "[v for v in model.variables if not v.trainable]"
            ),
            "parameters trainable_weights": "model.trainable_variables",
            "named_parameters": "model.named_variables, a dictionary",
            "requires_grad_": "model.trainable = False",
            "reset_states": "reset_state() of a metric; models made of layers have reset_states()",
            "save save_model to_json": "gt.save(model, path), or model.save_weights(path)",
            "state_dict": "model.named_variables, or model.save_weights(path)",
            "zero_grad": _NEW_GRADIENTS,
        }
    ),
    "layers.Layer": _each(
        {
            "weight": "layer.kernel, or layer.weights for all",
        }
    ),
    "training.Optimizer": _each(
        {
            "add_param_group": "another optimizer for the other variables",
            "apply step": "optimizer.apply_gradients(zip(gradients, variables))",
            "compute_gradients get_gradients": "tape.gradient(loss, variables)",
            "get_weights set_weights weights": "optimizer.variables",
            "init": "leave it out: the first step creates the state",
            "load_state_dict state_dict": (
                "gt.training.Checkpoint(model=model, optimizer=optimizer)"
            ),
            "lr param_groups": "optimizer.learning_rate",
            "zero_grad": _NEW_GRADIENTS,
        }
    ),
    "training.History": _each(
        {"accuracy loss val_accuracy val_loss": 'history.history["loss"], a list by name'}
    ),
    "GradientTape": _each(
        {
            "backward grad gradients": "tape.gradient(target, sources)",
            "hessian": "gt.hessian(function), or a tape in a tape",
        }
    ),
}

#: The places of the classes that call :func:`hinted`, once they are imported.
CLASSES = tuple(place for place in INSTEAD if place.rpartition(".")[2][:1].isupper())
