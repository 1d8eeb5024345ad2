"""What both estimators share: their parameters, and training that may go on."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from .. import training
from ..core.extend import Module
from ..layers import Dense, Sequential
from ..plugins.ops.random.functions import shared

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "RegressorMixin",
    "_check_partial_fit_first_call",
    "_check_sample_weight",
    "check_classification_targets",
    "check_is_fitted",
    "check_random_state",
    "compute_class_weight",
    "train_test_split",
    "validate_data",
]

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.model_selection import train_test_split
    from sklearn.utils import check_random_state
    from sklearn.utils.class_weight import compute_class_weight
    from sklearn.utils.multiclass import (
        _check_partial_fit_first_call,
        check_classification_targets,
    )
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ModuleNotFoundError as error:
    if error.name != "sklearn":
        raise

    class BaseEstimator:  # type: ignore[no-redef]
        """Replaces scikit-learn's class if that is missing: constructing an estimator raises."""

        def __new__(cls, *args: Any, **kwargs: Any) -> Self:
            """Raise an error that says what to install."""
            raise ImportError(
                f"sklearn.{cls.__name__}: scikit-learn is not installed: "
                'pip install "gradtape[sklearn]"'
            )

    class ClassifierMixin:  # type: ignore[no-redef]
        """Replaces scikit-learn's class if that is missing."""

    class RegressorMixin:  # type: ignore[no-redef]
        """Replaces scikit-learn's class if that is missing."""


def __getattr__(name: str) -> Any:
    """Return None for functions of scikit-learn if it is missing: nothing can call them then."""
    if name not in __all__:
        raise AttributeError(name)
    return None


#: The batch size of predictions.
_PART = 256
#: The hidden layers if nothing is said.
_UNITS = (64,)


class Estimator(BaseEstimator):  # type: ignore[misc, unused-ignore]
    """Base class of both: creates a model, trains it on checked arrays, and predicts."""

    # scikit-learn treats an estimator with these attributes as trained
    model_: Any
    history_: dict[str, list[float]]
    n_epochs_: int
    _optimizer: training.Optimizer
    _trained_with: dict[str, Any]

    def __init__(
        self,
        model: Module | Callable[[int], Module] | None = None,
        *,
        units: int | Sequence[int] = _UNITS,
        epochs: int = 100,
        batch_size: int = 32,
        optimizer: training.Optimizer | str = "adam",
        learning_rate: float | None = None,
        loss: Any = None,
        metrics: Sequence[Any] | None = None,
        validation_split: float = 0.0,
        shuffle: bool = True,
        callbacks: Iterable[Any] = (),
        random_state: Any = None,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        # scikit-learn copies estimators by their arguments, which must be kept unchanged
        self.model = model
        self.units = units
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.loss = loss
        self.metrics = metrics
        self.validation_split = validation_split
        self.shuffle = shuffle
        self.callbacks = callbacks
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def _train(
        self,
        x: Any,
        y: Any,
        outputs: int,
        loss: Any,
        weight: Any,
        *,
        again: bool = False,
        once: bool = False,
        strata: Any = None,
    ) -> Self:
        """Train on checked arrays, with random numbers from the estimator's own seed.

        ``again`` continues with the existing model and optimizer. ``once`` is one pass through the
        data, without validation and callbacks.
        """
        self._check_unmasked(weight)
        data = [x, y] if weight is None else [x, y, _check_sample_weight(weight, x, dtype=x.dtype)]
        settings = self._settings()
        if again:
            # pickles of earlier versions do not say what they were trained with
            self._trained_with = vars(self).get("_trained_with", settings)
            self._check_same_model(settings)
        if not again or not _same(self.random_state, self._trained_with["random_state"]):
            self._random = check_random_state(self.random_state)
        seed = int(self._random.randint(2**31 - 1))
        held_out = None
        if self.validation_split and not once:  # drawn at random, as the data may be sorted
            parts = train_test_split(
                *data, test_size=self.validation_split, random_state=seed, stratify=strata
            )
            data, held_out = parts[::2], tuple(parts[1::2])
        with _seeded(seed):
            if not again:
                self.model_ = self._new_model(outputs)
            self._check_outputs(x, outputs)
            self._set_optimizer(settings, again)
            self._trained_with = settings
            run = training.fit(
                self.model_,
                tuple(data),
                epochs=1 if once else self.epochs,
                batch_size=self.batch_size,
                optimizer=self._optimizer,
                loss=loss,
                metrics=self.metrics,
                validation_data=held_out,
                shuffle=self.shuffle,
                callbacks=() if once else copy.deepcopy(self.callbacks),
                seed=seed,
                verbose=self.verbose,
            )
        before, past = (self.history_, self.n_epochs_) if again else ({}, 0)
        self.history_ = {  # metrics may have changed
            name: [
                *before.get(name, [np.nan] * past),
                *run.history.get(name, [np.nan] * len(run.epoch)),
            ]
            for name in {**before, **run.history}
        }
        self.n_epochs_ = past + len(run.epoch)
        return self

    def _settings(self) -> dict[str, Any]:
        """Return the parameters, in a form that shows whether the user changed them since."""
        found: dict[str, Any] = self.get_params(deep=False)
        optimizer = training.optimizers.get(self.optimizer)
        return {
            **found,
            "optimizer": (type(optimizer), copy.deepcopy(optimizer.get_config())),
            "units": _as_tuple(self.units),
        }

    def _check_same_model(self, settings: dict[str, Any]) -> None:
        """Raise if training continues with a model that other parameters would not make."""
        for name in ("model", "units"):
            before = self._trained_with[name]
            if not _same(settings[name], before):
                raise ValueError(
                    f"{type(self).__name__}: {name} was changed from {before!r:.80} to "
                    f"{settings[name]!r:.80}, which needs a new model, but warm_start and "
                    "partial_fit continue with the existing one; train a clone(...), or call fit "
                    "with warm_start=False"
                )

    def _set_optimizer(self, settings: dict[str, Any], again: bool) -> None:
        """Make an optimizer, or change the learning rate of the existing one."""
        before = self._trained_with if again else {}
        if not again or not _same(settings["optimizer"], before["optimizer"]):
            self._optimizer = self._new_optimizer()
        elif not _same(self.learning_rate, before["learning_rate"]):
            self._optimizer.learning_rate = self._new_optimizer().learning_rate

    def _check_outputs(self, x: Any, outputs: int) -> None:
        found = self.model_(x[:1]).shape
        if found[1:] != (outputs,):
            alone = ". A single output needs loss='binary_crossentropy'" * (found[1:] == (1,))
            raise ValueError(
                f"{type(self).__name__}: the model returns outputs of shape {found} for one "
                f"example, but the data need {outputs} outputs: give its last layer that many "
                f"units{alone}"
            )

    def _new_model(self, outputs: int) -> Any:
        """Return the model to train, which shares no variables with the argument."""
        units = _as_tuple(self.units)
        if self.model is not None and units != _UNITS:
            raise ValueError(
                f"{type(self).__name__}: units={self.units!r} are those of the default model, but "
                "model is given; leave one of them out"
            )
        if isinstance(self.model, Module):
            return copy.deepcopy(self.model)
        if self.model is not None:
            found: Any = self.model(outputs) if callable(self.model) else self.model
            if not isinstance(found, Module):
                raise TypeError(
                    f"{type(self).__name__}: model is a model, or a function of the number of "
                    f"outputs that returns one, but got {found!r:.80}"
                )
            return found
        hidden = [Dense(int(n), activation="relu") for n in units]
        return Sequential([*hidden, Dense(outputs)])

    def _new_optimizer(self) -> training.Optimizer:
        optimizer = copy.deepcopy(training.optimizers.get(self.optimizer))
        if self.learning_rate is not None:
            optimizer.learning_rate = self.learning_rate
        return optimizer

    def _checked(self, x: Any, y: Any, again: bool, **settings: Any) -> tuple[Any, Any]:
        """Return training data, checked by scikit-learn, and note their features."""
        kinds = [np.float64, np.float32]
        self._check_unmasked(x, y)
        x, y = validate_data(self, x, y, dtype=kinds, allow_nd=True, reset=not again, **settings)
        return x, y

    def _check_unmasked(self, *data: Any) -> None:
        """Raise for masked arrays, whose hidden values scikit-learn would take for data."""
        if any(isinstance(array, np.ma.MaskedArray) for array in data):
            raise TypeError(
                f"{type(self).__name__}: got a masked array, whose hidden values would become "
                "data; pass x.filled(value), or leave those examples out"
            )

    def _continues_training(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "model_")

    def _outputs(self, x: Any) -> Any:
        """Return the trained model's outputs, as an array."""
        check_is_fitted(self)
        kinds = [np.float64, np.float32]
        self._check_unmasked(x)
        x = validate_data(self, x, dtype=kinds, allow_nd=True, reset=False)
        return training.predict(self.model_, x, batch_size=_PART).numpy()


def _as_tuple(units: Any) -> tuple[Any, ...]:
    found = tuple(units) if isinstance(units, (tuple, list, np.ndarray)) else (units,)
    if not all(isinstance(n, (int, np.integer)) and n > 0 for n in found):
        raise ValueError(
            "units is the size of a hidden layer, or a tuple with the size of each, such as "
            f"(64, 32); got {units!r:.80}"
        )
    return found


def _same(new: Any, old: Any) -> bool:
    """Return whether a parameter is what it was; unclear comparisons count as a change."""
    if new is old:
        return True
    try:
        return type(new) is type(old) and bool(new == old)
    except Exception:  # of arrays, or of what defines no comparison
        return False


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed ``gradtape.random`` for a block, and restore its state afterwards."""
    generator = shared()
    before: Any = generator.state.numpy()
    generator.set_seed(seed)
    try:
        yield
    finally:
        generator.state = before
