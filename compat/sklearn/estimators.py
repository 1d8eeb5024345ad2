"""``Classifier`` and ``Regressor``: what ``fit`` trains, with scikit-learn's methods."""

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

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.class_weight import compute_sample_weight
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ModuleNotFoundError as error:
    if error.name != "sklearn":
        raise

    class BaseEstimator:  # type: ignore[no-redef]
        """In scikit-learn's place where it is missing: the classes can be seen, not made."""

        def __new__(cls, *args: Any, **kwargs: Any) -> Self:
            """Say what to install."""
            raise ImportError(
                f"sklearn.{cls.__name__}: scikit-learn is not installed: "
                'pip install "gradtape[sklearn]"'
            )

    class ClassifierMixin:  # type: ignore[no-redef]
        """As above."""

    class RegressorMixin:  # type: ignore[no-redef]
        """As above."""


__all__ = ["Classifier", "Regressor"]

#: How many examples are predicted at a time.
_PART = 256


class _Estimator(BaseEstimator):  # type: ignore[misc, unused-ignore]
    """What both do: make a model, train it on arrays that scikit-learn has checked, predict."""

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
        verbose: bool = False,
    ) -> None:
        # scikit-learn copies estimators by their arguments: these are kept as they came
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
        self.verbose = verbose

    def _train(self, x: Any, y: Any, outputs: int, loss: Any, weight: Any) -> Self:
        """Train a new model on checked arrays, on random numbers of its own."""
        data = (x, y) if weight is None else (x, y, _check_sample_weight(weight, x, dtype=x.dtype))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with _seeded(seed):
            self.model_ = self._new_model(outputs)
            found = self.model_(x[:1]).shape
            if found[1:] != (outputs,):
                raise ValueError(
                    f"{type(self).__name__}: the model gives outputs of shape {found} for one "
                    f"example, and the data ask for {outputs}: its last layer has to have as many "
                    "units"
                )
            run = training.fit(
                self.model_,
                data,
                epochs=self.epochs,
                batch_size=self.batch_size,
                optimizer=self._new_optimizer(),
                loss=loss,
                metrics=self.metrics,
                validation_split=self.validation_split,
                shuffle=self.shuffle,
                callbacks=copy.deepcopy(tuple(self.callbacks)),
                seed=seed,
                verbose=self.verbose,
            )
        self.history_ = run.history
        self.n_epochs_ = len(run.epoch)
        return self

    def _new_model(self, outputs: int) -> Any:
        """Return the model to train, which shares nothing with the argument."""
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

    def _checked(self, x: Any, y: Any, **settings: Any) -> tuple[Any, Any]:
        """Return data to train on, as scikit-learn checks them; remember their features."""
        kinds = [np.float64, np.float32]
        x, y = validate_data(self, x, y, dtype=kinds, allow_nd=True, **settings)
        return x, y

    def _outputs(self, x: Any) -> Any:
        """Return the trained model's outputs, as an array."""
        check_is_fitted(self)
        kinds = [np.float64, np.float32]
        x = validate_data(self, x, dtype=kinds, allow_nd=True, reset=False)
        return training.predict(self.model_, x, batch_size=_PART).numpy()


class Classifier(ClassifierMixin, _Estimator):  # type: ignore[misc, unused-ignore]
    """A classifier for scikit-learn: in pipelines, in searches, in cross-validation.

    Parameters
    ----------
    model
        A function of the number of classes that returns a new model, or a model, of which a copy is
        trained. It returns a logit for each class. By default dense layers with relu, of the sizes
        ``units``.
    units
        The sizes of the hidden layers if ``model`` is not given, ``(64,)`` by default.
    epochs, batch_size, metrics, validation_split, shuffle, verbose
        As for :func:`gradtape.training.fit`; 100 epochs of batches of 32 by default.
    optimizer
        An optimizer, of which a copy is used, or a name, ``"adam"`` by default.
    learning_rate
        Its learning rate, if it is to have another: one name for searches over any optimizer.
    loss
        A loss of integer labels, ``"sparse_categorical_crossentropy"`` of logits by default. If it
        is one of probabilities, the model returns these.
    callbacks
        Callbacks of ``fit``, copied for each training.
    random_state
        A seed, a NumPy ``RandomState`` or ``None``, as in all of scikit-learn: it decides the first
        weights, the order of the examples and what layers draw.
    class_weight
        What examples count by their label, in a dictionary, or ``"balanced"`` for as much together
        in each class; 1 by default.

    Attributes
    ----------
    model_ : Module
        The trained model.
    classes_ : ndarray
        The labels.
    history_ : dict of str to list of float
        What each epoch measured.
    n_epochs_ : int
        How many epochs there were.

    Raises
    ------
    ImportError
        If scikit-learn is not installed.
    ValueError
        At ``fit``, if the data are not what scikit-learn takes, or the model has another number of
        outputs than there are classes.

    Notes
    -----
    Trained estimators are pickled and copied with their weights; a function in ``model`` then has
    to be one that ``pickle`` finds by its name. Inputs stay ``float64`` or ``float32`` as they
    come, others become ``float64``, and the model computes in that. Inputs may have more axes than
    two. While an estimator trains, :mod:`gradtape.random` gives the numbers of its seed, and goes
    on afterwards where it was; so train several at a time in processes (joblib's default), not in
    threads.

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
            A label for each, of any kind that NumPy sorts.
        sample_weight
            What each example counts; 1 by default.

        Returns
        -------
        Classifier
            The estimator itself.
        """
        x, y = self._checked(X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__}: y has 1 class, {self.classes_[0]!r}: there is nothing to "
                "tell apart"
            )
        if self.class_weight is not None:
            by_class = compute_sample_weight(self.class_weight, y)
            sample_weight = by_class if sample_weight is None else by_class * sample_weight
        count = len(self.classes_)
        return self._train(x, codes.astype("int64"), count, self._loss(), sample_weight)

    def _loss(self) -> Any:
        return "sparse_categorical_crossentropy" if self.loss is None else self.loss

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, an array of a row per example.

        Parameters
        ----------
        X
            Inputs.
        """
        outputs = self._outputs(X)
        kind = kind_of(training.losses.get(self._loss()))
        if kind is not None and not kind.from_logits:
            return outputs
        weights = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """Return the likeliest label of each example.

        Parameters
        ----------
        X
            Inputs.
        """
        chosen = self._outputs(X).argmax(axis=1)
        return self.classes_[chosen]


class Regressor(RegressorMixin, _Estimator):  # type: ignore[misc, unused-ignore]
    """A regressor for scikit-learn: in pipelines, in searches, in cross-validation.

    Parameters
    ----------
    model
        A function of the number of targets that returns a new model, or a model, of which a copy is
        trained. By default dense layers with relu, of the sizes ``units``.
    units, epochs, batch_size, optimizer, learning_rate, metrics, validation_split
        As for :class:`Classifier`.
    shuffle, callbacks, random_state, verbose
        As for :class:`Classifier`.
    loss
        A loss, ``"mse"`` by default.

    Attributes
    ----------
    model_ : Module
        The trained model.
    history_ : dict of str to list of float
        What each epoch measured.
    n_epochs_ : int
        How many epochs there were.

    Raises
    ------
    ImportError
        If scikit-learn is not installed.
    ValueError
        At ``fit``, if the data are not what scikit-learn takes, or the model has another number of
        outputs than there are targets.

    Notes
    -----
    As for :class:`Classifier`. Several targets are the columns of ``y``. Targets are learnt as they
    are: scale large ones, as with scikit-learn's ``TransformedTargetRegressor``.

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
            A number for each, or a row of numbers.
        sample_weight
            What each example counts; 1 by default.

        Returns
        -------
        Regressor
            The estimator itself.
        """
        x, y = self._checked(X, y, multi_output=True, y_numeric=True)
        self._single = y.ndim == 1
        y = y.reshape(len(y), -1).astype(x.dtype)
        loss = "mse" if self.loss is None else self.loss
        return self._train(x, y, y.shape[1], loss, sample_weight)

    def predict(self, X: Any) -> Any:
        """Return a number for each example, or a row of them if there were several targets.

        Parameters
        ----------
        X
            Inputs.
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if self._single else outputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Draw from this seed, and then go on where ``gradtape.random`` was."""
    generator = shared()
    before: Any = generator.state.numpy()
    generator.set_seed(seed)
    try:
        yield
    finally:
        generator.state = before
