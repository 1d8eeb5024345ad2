"""Data frames, series and labelled arrays: as arguments, as results, and beside tensors."""

from __future__ import annotations

import datetime
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

pd = pytest.importorskip("pandas", reason="pip install pandas")
pl = pytest.importorskip("polars", reason="pip install polars")
xr = pytest.importorskip("xarray", reason="pip install xarray")

DAY, MOMENT = datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1)
HOUR, NOON = datetime.timedelta(hours=1), datetime.time(12)
NAN = float("nan")

# -- what goes in ----------------------------------------------------------------------------------

# The dtype and the values of a column.
NUMBERS: dict[str, tuple[Any, str, list[Any]]] = {
    "int8": (pd.Series([1, 2], dtype="int8"), "int8", [1, 2]),
    "Int64": (pd.Series([1, 2], dtype="Int64"), "int64", [1, 2]),
    "Int64 with NA": (pd.Series([1, None], dtype="Int64"), "float64", [1, NAN]),
    "Float32 with NA": (pd.Series([1, None], dtype="Float32"), "float32", [1, NAN]),
    "boolean with NA": (pd.Series([True, None], dtype="boolean"), "float64", [1, NAN]),
    "categories of numbers": (pd.Series([5, 7, 5], dtype="category"), "int64", [5, 7, 5]),
    "sparse": (pd.Series(pd.arrays.SparseArray([0.0, 1.0])), "float64", [0, 1]),
    "index": (pd.RangeIndex(2), "int64", [0, 1]),
    "pandas array": (pd.array([1, None]), "float64", [1, NAN]),
    "polars nulls": (pl.Series([1.5, None]), "float64", [1.5, NAN]),
    "polars booleans": (pl.Series([True, False]), "bool", [True, False]),
    "polars booleans with nulls": (pl.Series([True, None]), "float64", [1, NAN]),
    "polars int8": (pl.Series([1, 2], dtype=pl.Int8), "int8", [1, 2]),
    "xarray": (xr.DataArray([1.0, 2.0], dims="x", name="a"), "float64", [1, 2]),
    "xarray variable": (xr.Variable("x", [1.0, 2.0]), "float64", [1, 2]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_column_of_numbers_is_a_tensor(name: str) -> None:
    column, dtype, values = NUMBERS[name]
    for made in (gt.constant(column), gt.Variable(column).value, gt.add(column, False)):
        assert made.dtype == dtype
        np.testing.assert_array_equal(made.numpy(), values)


def test_columns_of_pyarrow_are_tensors() -> None:
    pa = pytest.importorskip("pyarrow", reason="pip install pyarrow")
    frame = pd.DataFrame({"a": [1, None], "b": [True, False]}).convert_dtypes(
        dtype_backend="pyarrow"
    )
    np.testing.assert_array_equal(gt.constant(frame).numpy(), [[1, 1], [NAN, 0]])
    table = pa.table({"a": [1.0, None], "b": [True, None]})
    np.testing.assert_array_equal(gt.constant(table).numpy(), [[1, 1], [NAN, NAN]])
    for column, kind in ((["x", "y"], "words"), ([DAY, DAY], "dates")):
        with pytest.raises(TypeError, match=f"column 'b' of the Table holds {kind}"):
            gt.constant(pa.table({"a": [1.0, 2.0], "b": column}))


# Each has the dates, times or words in the column "b", beside a column of floats: polars would turn
# the dates into days or microseconds.
FRAMES: dict[str, tuple[Callable[[], Any], str]] = {
    "pandas words": (lambda: pd.DataFrame({"a": [1.0], "b": ["x"]}), "words"),
    "pandas categories": (lambda: pd.DataFrame({"a": [1.0], "b": pd.Categorical(["x"])}), "words"),
    "pandas dates": (lambda: pd.DataFrame({"a": [1.0], "b": [pd.Timestamp(MOMENT)]}), "dates"),
    "pandas only dates": (lambda: pd.DataFrame({"b": [pd.Timestamp(MOMENT)]}), "dates"),
    "pandas times": (lambda: pd.DataFrame({"a": [1.0], "b": [pd.Timedelta(HOUR)]}), "times"),
    "polars words": (lambda: pl.DataFrame({"a": [1.0], "b": ["x"]}), "words"),
    "polars dates": (lambda: pl.DataFrame({"a": [1.0], "b": [DAY]}), "dates"),
    "polars moments": (lambda: pl.DataFrame({"a": [1], "b": [MOMENT]}), "dates"),
    "polars durations": (lambda: pl.DataFrame({"a": [1.0], "b": [HOUR]}), "times"),
    "polars times of day": (lambda: pl.DataFrame({"a": [1.0], "b": [NOON]}), "objects of time"),
    "polars lists": (lambda: pl.DataFrame({"a": [1.0], "b": [[1, 2]]}), "objects of ndarray"),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_column_without_numbers_is_refused_by_name(name: str) -> None:
    make, kind = FRAMES[name]
    message = f"column 'b' of the DataFrame holds {kind}"
    for use in (
        gt.constant,
        gt.sin,
        gt.Variable,
        gt.layers.Dense(1),
        gt.data.Dataset.from_tensor_slices,
        lambda x: gt.training.fit(gt.layers.Dense(1), (x, [[1.0]]), loss="mse", verbose=0),
    ):
        with pytest.raises(TypeError, match=message):
            use(make())


COLUMNS: dict[str, tuple[Any, str]] = {
    "words": (pd.Series(["x"], name="hue"), "Series 'hue': .*np.unique"),
    "categories": (
        pd.Series(["x"], dtype="category", name="hue"),
        r"Series 'hue': .*x\.cat\.codes",
    ),
    "dates with a zone": (pd.Series([pd.Timestamp(MOMENT, tz="UTC")]), "UTC.*difference of dates"),
    "periods": (pd.Series(pd.period_range("2020", periods=1, freq="D")), r"dtype period\[D\]"),
    "objects with None": (pd.Series([1, None], dtype=object), r"astype\('float64'\), which makes"),
    "lists": (pd.Series([[1, 2], [3, 4]]), r"np\.stack"),
    "polars words": (pl.Series("hue", ["x"]), "Series 'hue': .*dtype String.*np.unique"),
    "polars decimals": (pl.Series(["1.5"]).cast(pl.Decimal(10, 2)), r"\.cast\(float\)"),
    "polars dates": (pl.Series([DAY]), "dtype Date; .*difference of dates"),
    "xarray words": (xr.DataArray(["x"], name="hue"), "DataArray 'hue': .*np.unique"),
    "xarray dataset": (xr.Dataset({"a": ("x", [1.0])}), "create an xarray.DataArray first"),
    "query": (pl.LazyFrame({"a": [1.0]}), r"\.collect\(\)"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_without_numbers_is_refused_with_what_to_do(name: str) -> None:
    column, message = COLUMNS[name]
    for use in (gt.constant, gt.sin, gt.layers.Dense(1)):
        with pytest.raises(TypeError, match=message):
            use(column)


def test_a_component_without_numbers_is_named() -> None:
    frame = pd.DataFrame({"a": [1.0], "hue": ["red"]})
    data = gt.data.Dataset.from_tensor_slices((dict(frame), [1.0]))
    with pytest.raises(TypeError, match=r"element\[0\]\['hue'\]: .*np\.unique"):
        next(iter(data.batch(1)))
    assert next(iter(data.map(lambda x, y: (x["a"], y)).batch(1)))[0].tolist() == [1.0]


# -- operators -------------------------------------------------------------------------------------

W = gt.Variable([2.0, 3.0])
SCALE = gt.Variable(2.0)
FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
SERIES = pd.Series([1.0, 2.0], name="a")
ARRAY = xr.DataArray([1.0, 2.0], dims="x")
OPERATORS = ("add", "sub", "mul", "truediv", "pow", "lt", "ge", "eq", "ne")


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("x", [W, W.value, SCALE, SCALE.value], ids=["W", "Wt", "s", "st"])
def test_an_operator_gives_the_kind_of_its_first_operand(name: str, x: Any) -> None:
    apply = getattr(operator, name)
    for first in (FRAME, SERIES):
        result = apply(first, x)
        assert type(result) is type(first)
        pd.testing.assert_index_equal(result.index, first.index)
        np.testing.assert_array_equal(result, apply(np.asarray(first), np.asarray(x)))
        assert all(type(block.values) is np.ndarray for block in result._mgr.blocks)
    for second in (FRAME, SERIES, pl.DataFrame({"a": [1.0, 2.0]}), pl.Series([1.0, 2.0])):
        result = apply(x, second)
        assert type(result) is gt.Tensor
        np.testing.assert_array_equal(result, apply(np.asarray(x), np.asarray(second)))


def of_new_column() -> Any:
    frame = FRAME.copy()
    frame["y"] = frame["a"] * SCALE
    return gt.mean((frame["y"] - 1.0) ** 2)


def of_assigned_column() -> Any:
    frame = FRAME.copy()
    frame["y"] = W
    return gt.sum(frame["y"])


def of_assigned_place() -> Any:
    frame = FRAME.copy()
    frame.iloc[0, 0] = SCALE
    return gt.sum(frame)


def of_assigned_label() -> Any:
    array = ARRAY.copy()
    array.loc[{"x": 0}] = SCALE
    return gt.sum(array)


# pandas and polars keep values: what is computed from them is a constant.
LOST: dict[str, Callable[[], Any]] = {
    "series * number": lambda: gt.sum(SERIES * SCALE),
    "series * vector": lambda: gt.sum(SERIES * W),
    "frame * number": lambda: gt.sum(FRAME * SCALE),
    "frame @ vector": lambda: gt.sum(FRAME @ W),
    "series -= vector": lambda: gt.sum(operator.isub(SERIES.copy(), W)),
    "new column": of_new_column,
    "assigned column": of_assigned_column,
    "assigned place": of_assigned_place,
    "apply": lambda: gt.sum(FRAME.apply(lambda column: column * SCALE)),
    "map": lambda: gt.sum(SERIES.map(lambda x: float(x * SCALE))),
    "where": lambda: gt.sum(SERIES.where(SERIES > 1, SCALE)),
    "clip": lambda: gt.sum(SERIES.clip(lower=SCALE)),
    "Series": lambda: gt.sum(pd.Series(W)),
    "DataFrame": lambda: gt.sum(pd.DataFrame({"a": W, "b": W * 2.0})),
    "rolling": lambda: gt.sum(pd.Series(W).rolling(2).mean().dropna()),
    "polars columns": lambda: gt.sum(pl.DataFrame({"a": np.asarray(W)})),
    "assigned label": of_assigned_label,
    "xarray of an array": lambda: gt.sum(xr.DataArray(np.asarray(W * 2.0))),
    "polars series * number": lambda: gt.sum(pl.Series([1.0, 2.0]) * SCALE),
    "as a target": lambda: gt.constant(SERIES * SCALE),
    "in a layer": lambda: gt.layers.Dense(1, kernel_initializer="ones")(FRAME * SCALE),
}


@pytest.mark.parametrize("name", LOST)
def test_a_gradient_that_ends_in_a_data_frame_is_warned_of(name: str) -> None:
    with gt.GradientTape() as tape:
        y = LOST[name]()
    with pytest.warns(gt.errors.BrokenPathWarning, match="test_data_frames.py"):
        tape.gradient(y, [W, SCALE])
    with gt.GradientTape(strict=True) as tape:
        y = LOST[name]()
    with pytest.raises(gt.errors.GradientError):
        tape.gradient(y, [W, SCALE])


# These keep tensors as they are.
KEPT: dict[str, tuple[Callable[[], Any], float]] = {
    "tensor first": (lambda: gt.sum(SCALE * SERIES), 3.0),
    "frame second": (lambda: gt.sum(SCALE * FRAME), 10.0),
    "series of tensors": (lambda: gt.sum(pd.Series([SCALE * 1.0, SCALE * 3.0])), 4.0),
    "a number in a column": (lambda: gt.sum(FRAME.assign(y=SCALE)["y"]), 2.0),
    "map": (lambda: gt.sum(SERIES.map(lambda x: x * SCALE)), 3.0),
    "frame of tensors": (lambda: gt.sum(pd.DataFrame({"a": [SCALE, SCALE], "b": [1, 2]})), 2.0),
    "xarray": (lambda: gt.sum(ARRAY * SCALE), 3.0),
    "xarray first": (lambda: gt.sum((ARRAY - SCALE).mean()), -1.0),
    "xarray of a tensor": (lambda: gt.sum(xr.DataArray(W * SCALE)), 5.0),
    "xarray by label": (lambda: gt.sum((ARRAY * SCALE).sel(x=1)), 2.0),
    "xarray concat": (lambda: gt.sum(xr.concat([ARRAY * SCALE, ARRAY], "x")), 3.0),
    "xarray dataset": (lambda: gt.sum((xr.Dataset({"a": ARRAY}) * SCALE)["a"]), 3.0),
    "a list of arrays": (lambda: gt.sum([ARRAY * SCALE, ARRAY]), 3.0),
}


@pytest.mark.parametrize("name", KEPT)
def test_tensors_in_other_containers_keep_their_gradients(name: str) -> None:
    compute, expected = KEPT[name]
    with gt.GradientTape() as tape:
        y = compute()
    assert tape.gradient(y, SCALE).item() == pytest.approx(expected)


def test_xarray_has_second_derivatives_and_traces() -> None:
    def f(x: Any) -> Any:
        return gt.sum((ARRAY * x) ** 3)

    x = gt.constant(2.0)
    assert gt.grad(gt.grad(f))(x).item() == pytest.approx(6.0 * 2.0 * 9.0)
    assert gt.function(f)(x).item() == pytest.approx(72.0)


def test_logs_beside_data_frames_warn_of_nothing() -> None:
    data = pd.DataFrame({"x": np.linspace(0.0, 1.0, 12), "y": np.linspace(1.0, 3.0, 12)})
    other, losses = pl.from_pandas(data), []
    data["z"] = pd.array(data["x"], dtype="Float64")  # polars needs pyarrow for these
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for start in (0, 4, 8):
            with gt.GradientTape() as tape:
                rows = data.iloc[start : start + 4]
                loss = gt.mean((gt.constant(rows["x"]) * SCALE - rows["y"].to_numpy()) ** 2)
                losses.append(float(loss))
                for table in (data, data["x"], data["z"], other, other["x"], ARRAY):
                    loss += 0.0 * gt.sum(table)
            assert tape.gradient(loss, SCALE) is not None


# -- results that go back --------------------------------------------------------------------------


def test_columns_are_made_of_tensors() -> None:
    for x in (W, W.value):
        frame = FRAME.copy()
        frame["y"] = x
        frame.loc[:, "a"] = x
        assert frame["y"].dtype == "float32"
        assert frame["a"].tolist() == frame["y"].tolist() == [2.0, 3.0]
        assert pd.Series(x).tolist() == pd.Index(x).tolist() == [2.0, 3.0]
        assert pd.DataFrame({"a": x})["a"].tolist() == [2.0, 3.0]
        assert pl.Series(x.numpy()).to_list() == [2.0, 3.0]
        assert xr.DataArray(x, dims="x").to_numpy().tolist() == [2.0, 3.0]


def test_a_function_does_not_return_a_labelled_array_without_values() -> None:
    with pytest.raises(gt.errors.TraceError, match="returns a DataArray, which holds traced"):
        gt.function(lambda x: ARRAY * x)(SCALE.value)
