"""``Classifier`` and ``Regressor``: models with scikit-learn's methods."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from ... import training
from ...core.extend import Module
from ...layers import Dense, Sequential
from ...plugins.ops.random.functions import shared
from ...training.losses.kinds import kind_of
from .needed import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    _check_partial_fit_first_call,
    _check_sample_weight,
    check_classification_targets,
    check_is_fitted,
    check_random_state,
    compute_sample_weight,
    train_test_split,
    validate_data,
)

__all__ = ["Classifier", "Regressor"]

#: The batch size of predictions.
_PART = 256


class _Estimator(BaseEstimator):  # type: ignore[misc, unused-ignore]
    """Base class of both: creates a model, trains it on checked arrays, and predicts."""

    # scikit-learn treats an estimator with these attributes as trained
    model_: Any
    history_: dict[str, list[float]]
    n_epochs_: int

    def __init__(
        self,
        model: Module | Callable[[int], Module] | None = None,
        *,
        units: int | Sequence[int] = (64,),
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
        data = [x, y] if weight is None else [x, y, _check_sample_weight(weight, x, dtype=x.dtype)]
        if not again:
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
                self._optimizer = self._new_optimizer()
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
        before = self.history_ if again else {}
        self.history_ = {name: [*before.get(name, ()), *x] for name, x in run.history.items()}
        self.n_epochs_ = len(run.epoch) + (self.n_epochs_ if again else 0)
        return self

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
        if isinstance(self.model, Module):
            return copy.deepcopy(self.model)
        if self.model is not None:
            return self.model(outputs)
        units = (self.units,) if isinstance(self.units, (int, np.integer)) else self.units
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
        x, y = validate_data(self, x, y, dtype=kinds, allow_nd=True, reset=not again, **settings)
        return x, y

    def _goes_on(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "model_")

    def _outputs(self, x: Any) -> Any:
        """Return the trained model's outputs, as an array."""
        check_is_fitted(self)
        kinds = [np.float64, np.float32]
        x = validate_data(self, x, dtype=kinds, allow_nd=True, reset=False)
        return training.predict(self.model_, x, batch_size=_PART).numpy()


class Classifier(ClassifierMixin, _Estimator):  # type: ignore[misc, unused-ignore]
    """A classifier for scikit-learn's pipelines, searches and cross-validation.

    Parameters
    ----------
    model
        A function of the number of outputs that returns a new model; or a model, of which a copy is
        trained. It must return a logit for each class, or a single logit if the loss is
        ``"binary_crossentropy"``. The default is dense layers with relu, of the sizes ``units``.
    units
        The sizes of the hidden layers if ``model`` is not given, ``(64,)`` by default.
    epochs, batch_size, metrics, shuffle, verbose
        As for :func:`gradtape.training.fit`; 100 epochs with batches of 32 by default.
    validation_split
        The fraction of the examples to validate with after each epoch, which ``EarlyStopping``
        needs. They are drawn at random, stratified by class if possible.
    optimizer
        An optimizer, of which a copy is used, or a name, ``"adam"`` by default.
    learning_rate
        The optimizer's learning rate; its own by default. Searches can use this parameter with any
        optimizer.
    loss
        A loss of integer labels; or ``"binary_crossentropy"`` or ``"categorical_crossentropy"``.
        The default is ``"sparse_categorical_crossentropy"`` of logits. With a loss of
        probabilities, the model must return these.
    callbacks
        Callbacks of ``fit``, copied for each run.
    random_state
        A seed, a NumPy ``RandomState`` or ``None``, as elsewhere in scikit-learn. It determines the
        initial weights, the order of the examples and the random numbers of layers.
    warm_start
        Whether ``fit`` continues with the model and the optimizer of an earlier call.
    class_weight
        A dictionary with the weight of each label; or ``"balanced"``, which gives all classes the
        same total weight. 1 by default.

    Attributes
    ----------
    model_ : Module
        The trained model.
    classes_ : ndarray
        The labels.
    history_ : dict of str to list of float
        The values of each epoch.
    n_epochs_ : int
        The number of epochs.

    Raises
    ------
    ImportError
        If scikit-learn is not installed.
    ValueError
        At ``fit``, if scikit-learn refuses the data, or the number of the model's outputs is not
        the number of classes.

    Notes
    -----
    Trained estimators are pickled and copied with their weights. A function in ``model`` must then
    be one that ``pickle`` finds by its name. Inputs in ``float64`` or ``float32`` keep their dtype,
    others become ``float64``; the model computes in that dtype. Inputs may have more than two axes.
    While an estimator trains, :mod:`gradtape.random` draws from the estimator's seed. Afterwards it
    continues its own sequence. To train several estimators at the same time, use processes
    (joblib's default), not threads.

    Examples
    --------
    >>> clf = gt.sklearn.Classifier(epochs=20, random_state=0)  # doctest: +SKIP
    >>> x = np.linspace(-1, 1, 64)[:, None]  # doctest: +SKIP
    >>> clf.fit(x, np.where(x[:, 0] > 0, "right", "left")).predict([[0.7]])  # doctest: +SKIP
    array(['right'], dtype='<U5')
    """

    def __init__(
        self,
        model: Module | Callable[[int], Module] | None = None,
        *,
        units: int | Sequence[int] = (64,),
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
        class_weight: Any = None,
    ) -> None:
        super().__init__(
            model,
            units=units,
            epochs=epochs,
            batch_size=batch_size,
            optimizer=optimizer,
            learning_rate=learning_rate,
            loss=loss,
            metrics=metrics,
            validation_split=validation_split,
            shuffle=shuffle,
            callbacks=callbacks,
            random_state=random_state,
            warm_start=warm_start,
            verbose=verbose,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train a new model.

        Parameters
        ----------
        X
            Inputs, whose first axis counts examples.
        y
            A label for each example, of any type that NumPy sorts.
        sample_weight
            The weight of each example; 1 by default.

        Returns
        -------
        Classifier
            The estimator itself.
        """
        again = self._goes_on()
        x, y = self._checked(X, y, again)
        check_classification_targets(y)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__}: y has 1 class, {classes[0]!r}; a classifier needs at "
                "least 2"
            )
        if again and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"{type(self).__name__}: warm_start continues with classes {self.classes_}, but y "
                f"has {classes}; give the same classes, or set warm_start=False"
            )
        self.classes_: Any = classes
        return self._train_on(x, y, sample_weight, again=again)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train on examples once, and continue with the existing model.

        Parameters
        ----------
        X, y
            Inputs and labels, as for :meth:`fit`.
        classes
            All labels, including those of later calls; required at the first call.
        sample_weight
            The weight of each example; 1 by default.

        Returns
        -------
        Classifier
            The estimator itself.
        """
        again = hasattr(self, "model_")
        x, y = self._checked(X, y, again)
        check_classification_targets(y)
        _check_partial_fit_first_call(self, classes)
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(
                f"partial_fit: y has {unknown}, which are not among classes; list all classes at "
                "the first call"
            )
        return self._train_on(x, y, sample_weight, again=again, once=True)

    def _train_on(self, x: Any, y: Any, weight: Any, **settings: Any) -> Self:
        """Train on labels, encoded in the form that the loss takes."""
        if self.class_weight is not None:
            by_class = compute_sample_weight(self.class_weight, y)
            weight = by_class if weight is None else by_class * weight
        codes, count = np.searchsorted(self.classes_, y), len(self.classes_)
        sizes = np.bincount(codes)
        held_out = len(y) * (self.validation_split or 0.0)
        strata = codes if sizes[sizes > 0].min() > 1 and held_out >= count else None
        targets, outputs = codes.astype("int64"), count
        kind = self._kind()
        if kind is not None and kind.classes == "binary":
            if count > 2:
                raise ValueError(
                    f"{type(self).__name__}: {kind.name} is for 2 classes, but y has {count}; use "
                    "sparse_categorical_crossentropy"
                )
            targets, outputs = codes.astype(x.dtype)[:, None], 1
        elif kind is not None and kind.classes == "categorical":
            targets = np.eye(count, dtype=x.dtype)[codes]
        return self._train(x, targets, outputs, self._loss(), weight, strata=strata, **settings)

    def _loss(self) -> Any:
        return "sparse_categorical_crossentropy" if self.loss is None else self.loss

    def _kind(self) -> Any:
        return kind_of(training.losses.get(self._loss()))

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, an array with a row per example.

        Parameters
        ----------
        X
            Inputs.
        """
        outputs, kind = self._outputs(X), self._kind()
        if kind is not None and kind.classes == "binary":
            yes = 0.5 + 0.5 * np.tanh(0.5 * outputs) if kind.from_logits else outputs
            return np.concatenate([1.0 - yes, yes], axis=1)
        if kind is not None and not kind.from_logits:
            return outputs
        weights = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """Return the most probable label of each example.

        Parameters
        ----------
        X
            Inputs.
        """
        chosen = self.predict_proba(X).argmax(axis=1)
        return self.classes_[chosen]


class Regressor(RegressorMixin, _Estimator):  # type: ignore[misc, unused-ignore]
    """A regressor for scikit-learn's pipelines, searches and cross-validation.

    Parameters
    ----------
    model
        A function of the number of targets that returns a new model; or a model, of which a copy is
        trained. The default is dense layers with relu, of the sizes ``units``.
    units, epochs, batch_size, optimizer, learning_rate, metrics, validation_split
        As for :class:`Classifier`.
    shuffle, callbacks, random_state, warm_start, verbose
        As for :class:`Classifier`.
    loss
        A loss, ``"mse"`` by default.

    Attributes
    ----------
    model_ : Module
        The trained model.
    history_ : dict of str to list of float
        The values of each epoch.
    n_epochs_ : int
        The number of epochs.

    Raises
    ------
    ImportError
        If scikit-learn is not installed.
    ValueError
        At ``fit``, if scikit-learn refuses the data, or the number of the model's outputs is not
        the number of targets.

    Notes
    -----
    As for :class:`Classifier`. Several targets are the columns of ``y``. Targets are not scaled:
    scale large ones, for example with scikit-learn's ``TransformedTargetRegressor``.

    Examples
    --------
    >>> reg = gt.sklearn.Regressor(units=(), random_state=0)  # doctest: +SKIP
    >>> x = np.linspace(-1, 1, 64)[:, None]  # doctest: +SKIP
    >>> reg.fit(x, 3 * x[:, 0]).score(x, 3 * x[:, 0]) > 0.9  # doctest: +SKIP
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train a new model.

        Parameters
        ----------
        X
            Inputs, whose first axis counts examples.
        y
            A number or a row of numbers for each example.
        sample_weight
            The weight of each example; 1 by default.

        Returns
        -------
        Regressor
            The estimator itself.
        """
        return self._train_on(X, y, sample_weight, again=self._goes_on())

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on examples once, and continue with the existing model.

        Parameters
        ----------
        X, y
            Inputs and targets, as for :meth:`fit`.
        sample_weight
            The weight of each example; 1 by default.

        Returns
        -------
        Regressor
            The estimator itself.
        """
        return self._train_on(X, y, sample_weight, again=hasattr(self, "model_"), once=True)

    def _train_on(self, x: Any, y: Any, weight: Any, again: bool, once: bool = False) -> Self:
        x, y = self._checked(x, y, again, multi_output=True, y_numeric=True)
        shape = y.shape[1:]
        if again and shape != self._targets:
            raise ValueError(
                f"{type(self).__name__}: y has shape {y.shape}, but the model was trained for "
                f"targets of shape {self._targets} per example"
            )
        self._targets: tuple[int, ...] = shape
        y = y.reshape(len(y), -1).astype(x.dtype)
        loss = "mse" if self.loss is None else self.loss
        return self._train(x, y, y.shape[1], loss, weight, again=again, once=once)

    def predict(self, X: Any) -> Any:
        """Return a number for each example, or a row of numbers if there were several targets.

        Parameters
        ----------
        X
            Inputs.
        """
        outputs = self._outputs(X)
        return outputs if self._targets else outputs[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


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
