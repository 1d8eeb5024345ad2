"""``Classifier`` and ``Regressor``: models with scikit-learn's methods."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from .. import training
from ..core.extend import Module
from ..training.checks import sum_to_one
from ..training.losses.loss import Kind, kind_of
from .base import (
    ClassifierMixin,
    Estimator,
    RegressorMixin,
    _check_partial_fit_first_call,
    check_classification_targets,
    compute_class_weight,
)

#: So many examples show whether a model returns probabilities.
_SEEN = 256


class Classifier(ClassifierMixin, Estimator):  # type: ignore[misc, unused-ignore]
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
        probabilities, the model must return these. For a loss of your own, an attribute
        ``from_logits`` says which; otherwise outputs that sum to 1 are probabilities.
    callbacks
        Callbacks of ``fit``, copied for each run.
    random_state
        A seed, a NumPy ``RandomState`` or ``None``, as elsewhere in scikit-learn. It determines the
        initial weights, the order of the examples and the random numbers of layers.
    warm_start
        Whether ``fit`` continues with the model and the optimizer of an earlier call. Parameters
        that were set since then count: another ``optimizer`` starts with a state of its own;
        ``model`` and ``units`` cannot change.
    class_weight
        A dictionary with the weight of each label; or ``"balanced"``, which gives all classes the
        same total weight (not in ``partial_fit``, which sees a part of them). 1 by default.

    Attributes
    ----------
    model_ : Module
        The trained model.
    classes_ : ndarray
        The labels.
    history_ : dict of str to list of float
        The values of each epoch; NaN for epochs without this metric.
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
        again = self._continues_training()
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

        It does without validation and callbacks. Parameters that were set since the last call count
        as for ``warm_start``.

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
        if self.class_weight == "balanced":
            raise ValueError(
                f"{type(self).__name__}: class_weight='balanced' counts all labels, "
                "but partial_fit sees a part of them; pass a dictionary, such as "
                "dict(zip(classes, compute_class_weight('balanced', classes=classes, y=all_y)))"
            )
        if classes is not None and len(np.unique(classes)) < 2:
            raise ValueError(
                f"{type(self).__name__}: classes holds 1 class; a classifier needs at least 2"
            )
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
        codes, count = np.searchsorted(self.classes_, y), len(self.classes_)
        if self.class_weight is not None:
            by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=y)[codes]
            weight = by_class if weight is None else by_class * weight
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
        self._train(x, targets, outputs, self._loss(), weight, strata=strata, **settings)
        self._form = kind or self._seen_form(x[:_SEEN])
        return self

    def _loss(self) -> Any:
        return "sparse_categorical_crossentropy" if self.loss is None else self.loss

    def _kind(self) -> Kind | None:
        return kind_of(training.losses.get(self._loss()))

    def _seen_form(self, x: Any) -> Kind:
        """Return what the outputs are if the loss is the user's own, which does not say it.

        Logits that are never negative and sum to 1 in every row do not occur.
        """
        said = getattr(self.loss, "from_logits", None)
        found = self._outputs(x)
        if said is None and (found >= 0).all():
            said = not sum_to_one(found, -1)
            if said:
                warnings.warn(
                    f"{type(self).__name__}: no output is negative, but those of an example do not "
                    "sum to 1, so it is unclear whether they are logits or probabilities; "
                    "predict_proba takes them for logits. End the model without an activation or "
                    "with softmax, or give the loss an attribute from_logits",
                    stacklevel=5,
                )
        return Kind("the loss", "sparse", said is None or bool(said), -1)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, an array with a row per example.

        Parameters
        ----------
        X
            Inputs.
        """
        outputs, kind = self._outputs(X), self._form
        if kind.classes == "binary":
            yes = 0.5 + 0.5 * np.tanh(0.5 * outputs) if kind.from_logits else outputs
            return np.concatenate([1.0 - yes, yes], axis=1)
        if not kind.from_logits:  # a sigmoid for each class does not sum to 1
            return outputs if sum_to_one(outputs, -1) else outputs / outputs.sum(1, keepdims=True)
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


class Regressor(RegressorMixin, Estimator):  # type: ignore[misc, unused-ignore]
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
        The values of each epoch; NaN for epochs without this metric.
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
        return self._train_on(X, y, sample_weight, again=self._continues_training())

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on examples once, and continue with the existing model.

        It does without validation and callbacks. Parameters that were set since the last call count
        as for ``warm_start``.

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
