"""Data as users have them: tables, loaders, files, labels; taken, or refused in words that help."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import Dense, Sequential
from gradtape.training import fit, predict

RNG = np.random.default_rng(3)
X = RNG.normal(size=(24, 3))
Y = np.arange(24) % 3
Dataset = gt.data.Dataset


def run(data: Any, **options: Any) -> list[float]:
    net = Sequential([Dense(3)])
    options = {"verbose": False, "seed": 0, "epochs": 2, **options}
    return fit(net, data, **options).history["loss"]


class Column:
    """A column of a table, as pandas has them, missing values among them."""

    def __init__(self, values: Any, dtype: Any = None) -> None:
        self.values, self.ndim = np.asarray(values), 1
        self.shape = self.values.shape
        self.dtype = self.values.dtype if dtype is None else np.dtype(dtype)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values.astype(dtype or self.values.dtype)

    def __len__(self) -> int:
        return len(self.values)

    def to_numpy(self, dtype: Any, na_value: Any) -> Any:
        return np.array([na_value if x is None else x for x in self.values], dtype)


class Table:
    """A data frame, whose array is of objects if the dtypes of its columns differ."""

    ndim = 2

    def __init__(self, **columns: Any) -> None:
        self.held = {name: x if isinstance(x, Column) else Column(x) for name, x in columns.items()}
        self.columns = list(columns)
        self.shape = (len(self), len(columns))

    def items(self) -> Any:
        return self.held.items()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.stack([np.asarray(x).astype(object) for x in self.held.values()], axis=1)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.held.values())))


TABLE = Table(a=X[:, 0], b=X[:, 1] > 0, c=Y)
VALUES = np.stack([X[:, 0], X[:, 1] > 0, Y], axis=1)
HOLED = Column(np.where(X[:, 2] > 0, None, X[:, 2]), "float64")


def test_a_table_of_numbers_of_several_dtypes_is_their_columns() -> None:
    assert run((TABLE, Column(Y))) == run((VALUES, Y))
    assert predict(Sequential([Dense(2)]), TABLE).shape == (24, 2)
    np.testing.assert_array_equal(gt.constant(TABLE).numpy(), VALUES)
    batch, _ = next(iter(Dataset.from_tensor_slices((TABLE, Column(Y))).batch(24)))
    np.testing.assert_array_equal(batch.numpy(), VALUES)


def test_missing_values_of_a_table_become_nan_and_are_told_of() -> None:
    table = Table(a=X[:, 0], c=HOLED)
    np.testing.assert_array_equal(np.isnan(gt.constant(table)[:, 1].numpy()), X[:, 2] > 0)
    np.testing.assert_array_equal(np.isnan(gt.constant(HOLED).numpy()), X[:, 2] > 0)
    with pytest.raises(FloatingPointError, match="x holds NaN"):
        run((table, Y))


DATES = np.zeros(24, "datetime64[D]")
WORDS = np.array(["red", "blue"] * 12)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (Table(a=X[:, 0], hue=WORDS), r"x: column 'hue' of the Table holds words \('red'\)"),
        (Table(a=X[:, 0], day=DATES), "x: column 'day' of the Table holds dates"),
        (WORDS, "x: .*np.unique"),
        (WORDS.tolist(), "x: .*np.unique"),
        (Column(WORDS.astype(object)), "x: .*np.unique"),
        (DATES, "x: .*a difference of dates"),
        (X.astype(object), r"x: .*\.astype\('float32'\)"),
        (np.zeros(24, [("a", "f4"), ("b", "f4")]), "x: .*dtype.names"),
        (np.array([object()] * 24), "x: a tensor holds numbers, not ndarray values of dtype obj"),
    ],
)
def test_what_holds_no_numbers_is_refused_with_what_to_do(x: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        run((x, Y))


def test_columns_of_validation_data_have_the_order_of_the_others() -> None:
    pandas = pytest.importorskip("pandas")
    train = pandas.DataFrame(X, columns=[*"abc"])
    other = train[[*"bac"]]
    with pytest.raises(ValueError, match=r"x of validation_data has .*\['b', 'a', 'c'\], not \['a"):
        run((train, Y), validation_data=(other, Y))
    run((train, Y), validation_data=(other[train.columns], Y))
    run((train, Y), validation_data=(train.rename(columns={"a": "new"}), Y))


def test_a_query_that_has_not_run_is_to_be_collected() -> None:
    class Query:
        def collect(self) -> Any: ...

    with pytest.raises(TypeError, match=r"pass the result of \.collect\(\)"):
        gt.constant(Query())


# -- iterables -------------------------------------------------------------------------------------


class Unsized:
    """Batches whose length is not known, though there is a method for it."""

    def __iter__(self) -> Iterator[Any]:
        return iter([(X, Y), (X, Y)])

    def __len__(self) -> int:
        raise TypeError("no length")


STREAM = Dataset.from_generator(lambda: zip(X, Y, strict=True))


@pytest.mark.parametrize(
    "data",
    [
        STREAM.batch(8),
        STREAM.filter(lambda x, y: y > 0).batch(8),
        Unsized(),
        STREAM.batch(8).cache(),
    ],
    ids=["generator", "filter", "unsized", "cache"],
)
def test_data_of_a_length_not_known_are_trained_on(data: Any) -> None:
    assert len(run(data, validation_data=data)) == 2
    assert gt.training.evaluate(Sequential([Dense(3)]), data)["loss"] > 0


ENDLESS = Dataset.from_tensor_slices((X, Y)).batch(8).repeat()


@pytest.mark.parametrize(
    "data", [ENDLESS, ENDLESS.map(lambda x, y: (2 * x, y)), ENDLESS.prefetch(), ENDLESS.skip(1)]
)
def test_data_without_an_end_are_told_of_and_not_waited_for(data: Any) -> None:
    assert data.cardinality() == math.inf
    with pytest.raises(ValueError, match="give steps_per_epoch"):
        run(data)
    with pytest.raises(ValueError, match="validation_data never ends"):
        run((X, Y), validation_data=data)
    assert len(run(data, steps_per_epoch=2)) == 2
    assert data.take(2).cardinality() != math.inf
    assert len(run(data.take(2))) == 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (TABLE, r"data is a Table with inputs and labels under names; give both in a tuple"),
        ({"x": X, "y": Y}, "data is a dict with inputs and labels under names"),
        ([X, Y], r"give arrays x and y in a tuple: \(x, y\)"),
        (lambda: iter([(X, Y)]), r"call it, or use gt\.data\.Dataset\.from_generator"),
    ],
)
def test_data_in_another_form_are_refused_with_the_right_one(data: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        run(data)


def test_items_by_number_become_batches() -> None:
    class Items:
        def __len__(self) -> int:
            return 24

        def __getitem__(self, i: int) -> Any:
            if i >= 24:
                raise IndexError
            return X[i], Y[i]

    with pytest.raises(
        TypeError, match=r"Dataset\(it\)\.batch\(32\) batches items, Dataset\(it\) reads"
    ):
        run(Items())
    assert len(run(Dataset(Items()).batch(8))) == 2


# -- CSV -------------------------------------------------------------------------------------------


def rows(path: Any, text: bytes, **options: Any) -> list[Any]:
    path.write_bytes(text)
    return Dataset.from_csv(path, **options).to_list()


def test_a_csv_file_as_programs_write_it(tmp_path: Any) -> None:
    path = tmp_path / "a.csv"
    marked = "a, b\n1, 2\n".encode("utf-8-sig")
    assert rows(path, marked) == [{"a": 1.0, "b": 2.0}]
    with pytest.raises(ValueError, match=r"pass the file's encoding=, such as 'latin-1'"):
        rows(path, "größe\n1\n".encode("latin-1"))
    assert rows(path, "größe\n1\n".encode("latin-1"), encoding="latin-1") == [{"größe": 1.0}]


def test_what_is_missing_in_a_csv_file_is_asked_for(tmp_path: Any) -> None:
    path, text = tmp_path / "a.csv", b"a,b,n\n1,,2\n"
    with pytest.raises(
        ValueError, match=r"line 2: column 'b' is empty; for columns of floats, pass missing="
    ):
        rows(path, text)
    assert rows(path, text, missing=-1.0) == [{"a": 1.0, "b": -1.0, "n": 2.0}]
    assert math.isnan(rows(path, text, missing=math.nan)[0]["b"])
    with pytest.raises(ValueError, match="column 'b' is empty"):  # no integer stands for it
        rows(path, text, missing=0.0, dtypes={"b": "int64"})


@pytest.mark.parametrize("missing", [0.0, math.nan])
def test_no_number_stands_for_an_empty_label(missing: float, tmp_path: Any) -> None:
    path, text = tmp_path / "a.csv", b"a,b\n1,2\n,\n"
    with pytest.raises(ValueError, match=r"line 3: column 'b' is empty, and missing= replaces no"):
        rows(path, text, label="b", missing=missing)
    found = Dataset.from_csv(path, missing=math.nan).filter(lambda row: not np.isnan(row["b"]))
    assert found.to_list() == [{"a": 1.0, "b": 2.0}]


def test_integers_that_lose_digits_are_told_of_once(tmp_path: Any) -> None:
    path, text = tmp_path / "a.csv", b"time,x\n16777217,16777216\n1700000001,-0.3\n"
    with pytest.warns(
        UserWarning, match=r"line 2: 16777217 in column 'time' becomes 16777216"
    ) as w:
        rows(path, text)
    assert len(w) == 1
    assert rows(path, text, dtypes={"time": "int64"})[1]["time"] == 1700000001
    rows(path, text, dtypes={"time": "float32"})  # as asked


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocabulary": {"a": {"x", "y"}}}, "is a list of words in the order of their numbers"),
        ({"vocabulary": {"a": "xy"}}, "is a list of words .* got 'xy'"),
        ({"vocabulary": {"a": None}}, "is a list of words .* got None"),
        ({"vocabulary": {"a": ["x", "y", "x"]}}, "column 'a' has 'x' more than once"),
        ({"vocabulary": {"a": {"x": 0.5, "y": 1}}}, "whose values must be integers"),
        ({"missing": {"b": 0.0}}, "missing= is one number"),
        ({"label": "c"}, "no column 'c'; there are"),
        ({"columns": ["b"], "dtypes": {"b": "float16"}}, "70000 in column 'b' does not fit into"),
    ],
)
def test_what_has_no_number_in_a_csv_file_is_refused(
    options: Any, message: str, tmp_path: Any
) -> None:
    with pytest.raises(ValueError, match=message):
        rows(tmp_path / "a.csv", b"a,b\nx,1\ny,70000\n", **options)


def test_words_have_the_numbers_of_a_vocabulary(tmp_path: Any) -> None:
    path, text = tmp_path / "a.csv", b"a,b\nx,5\ny,7\n"
    vocabulary = {"a": {"x": 3, "y": 1}, "b": [7, 5]}
    found = rows(path, text, vocabulary=vocabulary)
    assert found == [{"a": 3, "b": 1}, {"a": 1, "b": 0}]
    for words in (np.array(["x", "y"]), {"x": 0, "y": 1}.keys(), ("x", "y")):
        assert rows(path, text, vocabulary={"a": words})[1]["a"] == 1


def test_infinite_iterators_count_their_steps() -> None:
    batches = itertools.repeat((X, Y))
    assert len(run(batches, steps_per_epoch=3)) == 2


# -- labels ----------------------------------------------------------------------------------------

HOT = np.eye(3)[Y]
CATEGORICAL = gt.training.losses.CategoricalCrossentropy(from_logits=True)


@pytest.mark.parametrize(
    ("y", "loss", "message"),
    [
        (HOT, None, "labels of shape .* are one-hot; use loss='categorical_crossentropy'"),
        (Y, CATEGORICAL, "these have shape .* use loss='sparse_categorical_crossentropy'"),
        (Y[:, None], "categorical_crossentropy", "use loss='sparse_categorical_crossentropy'"),
        (
            Y + 0.5,
            None,
            r"integers \(0, 1, \.\.\.\), got 0.5; for regression .* loss='mse'",
        ),
        (np.where(Y == 1, np.nan, Y), None, "got nan"),
        (Y + 1, None, "labels must be from 0 to 2, got 1 to 3: the logits have 3 classes"),
        (np.array(["a", "b", "c"])[Y], None, "y: .*np.unique"),
    ],
)
@pytest.mark.parametrize("as_validation", [False, True])
def test_labels_for_another_loss_are_told_which(
    y: Any, loss: Any, message: str, as_validation: bool
) -> None:
    loss = loss or "sparse_categorical_crossentropy"
    net = Sequential([Dense(3)])
    fitting = HOT if "sparse" not in str(loss) else Y
    data, held = ((X, fitting), (X, y)) if as_validation else ((X, y), None)
    with pytest.raises((ValueError, TypeError), match=message):
        fit(net, data, loss=loss, validation_data=held, verbose=False)


def test_inputs_of_one_number_each_are_a_column() -> None:
    x = np.linspace(0, 1, 24)
    for y, loss, units in ((x, "mse", 1), (Y, "sparse_categorical_crossentropy", 3)):
        with pytest.raises(ValueError, match=r"for 24 examples.* a column: x\[:, None\]"):
            fit(Sequential([Dense(units)]), (x, y), loss=loss, verbose=False)


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        ({"metrics": ["acc"]}, "'accuracy'"),
        ({"metrics": ["precison"]}, "'Precision'"),
        ({"metrics": ["f1"]}, "'F1Score'"),
        ({"loss": "SparseCategoricalCrossEntropy"}, "'sparse_categorical_crossentropy'"),
        ({"loss": "nothing of the kind"}, None),
        ({"optimizer": "adamm"}, "'adam'"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(options: Any, meant: str | None) -> None:
    asked = "; known: " if meant is None else rf"; did you mean {meant}\? Known: "
    with pytest.raises(ValueError, match=rf"unknown \w+ '[^']+'{asked}\w+, "):
        run((X, Y), **options)


@pytest.mark.parametrize(
    ("y", "loss", "warns"),
    [
        (np.sort(Y), "sparse_categorical_crossentropy", "classes 2: the arrays are sorted"),
        (np.sort(Y)[:, None].astype("float32"), "sparse_categorical_crossentropy", "classes 2:"),
        (np.eye(3)[np.sort(Y)], "categorical_crossentropy", "classes 2: the arrays are sorted"),
        (Y, "sparse_categorical_crossentropy", None),
        (np.eye(3)[Y], "mse", None),
        (np.sort(np.eye(3)[Y]), "binary_crossentropy", None),
    ],
)
def test_a_split_of_sorted_arrays_is_told_of(y: Any, loss: str, warns: str | None) -> None:
    if warns is None:
        run((X, y), loss=loss, validation_split=0.4)
    else:
        with pytest.warns(UserWarning, match=warns):
            run((X, y), loss=loss, validation_split=0.4)


@pytest.mark.parametrize(
    ("x", "sizes"),
    [
        ([np.ones((4, 5, 3), "uint8"), np.ones((6, 5, 3), "uint8")], "(4, 5, 3) and (6, 5, 3)"),
        ([[1, 2], [3]], "1 and 2"),
        ([np.ones(3), np.ones(1)], "(1,) and (3,)"),
    ],
)
def test_lists_of_elements_of_different_sizes_are_told_to_be_padded(x: Any, sizes: str) -> None:
    told = f"data: x: its 2 elements have different sizes, such as {sizes}"
    with pytest.raises(ValueError, match=re.escape(told)):
        run((x, [0, 1]))


def test_metrics_with_and_without_weights_need_two_names() -> None:
    model, data = gt.layers.Sequential([gt.layers.Dense(2)]), (np.ones((4, 3)), [0, 1, 0, 1])
    named = gt.training.metrics.MeanMetricWrapper(gt.training.accuracy, "weighted_accuracy")
    both = {"metrics": ["accuracy", named], "weighted_metrics": ["accuracy"]}
    with pytest.raises(ValueError, match="'weighted_accuracy', one in metrics and one in weighted"):
        gt.training.evaluate(model, data, **both)


@pytest.mark.parametrize("dtype", ["U", "S", "O"])
def test_numbers_as_text_are_told_to_be_converted(dtype: str) -> None:
    texts = X.round(3).astype("U").astype(dtype)
    with pytest.raises(
        TypeError, match=r"these are numbers as text: pass np.asarray\(x, 'float64'\)"
    ):
        run((texts, Y))
    assert run((np.asarray(texts, "float64"), Y)) == run((X.round(3), Y))
    with pytest.raises(TypeError, match=r"encode words as numbers with np\.unique"):
        run((np.array(["1", "two", "3"] * 8), Y))
