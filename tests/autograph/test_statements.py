# ruff: noqa: SIM108, PERF401
"""What converted statements refuse and in which words, what they print and check, and where."""

from __future__ import annotations

import copy
import functools
import linecache
import pickle
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import TraceError

pytest.importorskip("malt", reason='AutoGraph needs pip install "gradtape[autograph]"')

FILE = Path(__file__).name
X = gt.constant([0.5, -0.4, 0.9])


def converted(f: Any, **options: Any) -> Any:
    return gt.function(f, autograph=True, **options)


def line_of(f: Any, text: str) -> int:
    """Return the line of a function's source that begins with a text."""
    lines = linecache.getlines(f.__code__.co_filename)
    first = f.__code__.co_firstlineno
    return next(i for i in range(first, len(lines)) if lines[i - 1].strip().startswith(text))


# -- what is refused -------------------------------------------------------------------------------


def two_dtypes(x):
    if x[0] > 0:
        y = x
    else:
        y = x.astype("float64")
    return y


def two_ranks(x):
    if x[0] > 0:
        y = x
    else:
        y = x[0]
    return y


def two_forms(x):
    if x[0] > 0:
        y = (x, x)
    else:
        y = (x, x, x)
    return y


def none_or_tensor(x):
    best = None
    if x[0] > 0:
        best = x
    return best


def two_words(x):
    if x[0] > 0:
        kind = "up"
    else:
        kind = "down"
    return kind


def a_loop_that_changes_a_dtype(x):
    y = x
    for e in x:
        y = y * e.astype("float64")
    return y


def a_loop_that_changes_a_rank(x):
    y = x
    while gt.sum(y) < 5.0:
        y = gt.stack([y, y])
    return y


def a_loop_that_changes_a_form(x):
    y = (x,)
    for e in x:
        y = (*y, e)
    return y


def none_before_the_loop(x):
    best = None
    for e in x:
        best = e
    return best


def an_append_in_a_loop(x):
    rows = []
    for e in x:
        rows.append(e * 2.0)
    return gt.stack(rows)


def an_append_in_a_branch(x):
    rows = [x]
    if x[0] > 0:
        rows.append(x)
    return gt.stack(rows)


def a_return_on_one_way(x):
    for e in x:
        if e < 0:
            return e


def an_attribute_of_one_way(x):
    class Box:
        pass

    box = Box()
    if x[0] > 0:
        box.value = x
    return box.value


def a_vector_for_a_condition(x):
    if x > 0:
        x = x * 2.0
    return x


def an_unassigned_name(x):
    if x[0] > 0:
        del x
    return x


REFUSED = [
    (
        two_dtypes,
        "if x",
        TypeError,
        r"'y' is float32 if the condition holds, and float64 otherwise",
    ),
    (two_ranks, "if x", ValueError, r"'y' has shape \(3,\) if the condition holds, and \(\)"),
    (
        two_forms,
        "if x",
        ValueError,
        r"'y' is a tuple of 2 if the condition holds, and a tuple of 3",
    ),
    (none_or_tensor, "if x", ValueError, r"'best' is a tensor if the condition holds, and None"),
    (two_words, "if x", ValueError, r"'kind' is 'up' if the condition holds, and 'down' otherwise"),
    (a_loop_that_changes_a_dtype, "for e", TypeError, r"'y' is float32 before the 'for' but floa"),
    (a_loop_that_changes_a_rank, "while", ValueError, r"'y' has shape \(3,\) before the 'while'"),
    (a_loop_that_changes_a_form, "for e", ValueError, r"'y' is a tuple of 1 before the 'for'"),
    (none_before_the_loop, "for e", ValueError, r"'best' is None before the 'for' but a tensor"),
    (an_append_in_a_loop, "for e", ValueError, r"the list 'rows' is changed inside a traced 'for'"),
    (an_append_in_a_branch, "if x", ValueError, r"the list 'rows' is changed inside a traced 'if'"),
    (a_return_on_one_way, "", ValueError, r"'a_return_on_one_way' returns a value on some paths"),
    (an_attribute_of_one_way, "if x", ValueError, r"box.value is assigned in only one branch"),
    (a_vector_for_a_condition, "if x", ValueError, r"'if' takes one value, got shape \(3,\)"),
]


@pytest.mark.parametrize(
    ("f", "statement", "error", "words"), REFUSED, ids=[row[0].__name__ for row in REFUSED]
)
def test_what_is_refused_names_the_variable_and_the_line(
    f: Any, statement: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as raised:
        converted(f)(X)
    if statement:
        assert f"{FILE}:{line_of(f, statement)}: " in str(raised.value)


# -- what is not assigned --------------------------------------------------------------------------


def assigned_in_a_loop(x):
    for e in x:
        last = e
    return last


def assigned_on_one_way(x):
    if x[0] > 0:
        y = x
    return y * 2.0


@pytest.mark.parametrize("f", [assigned_in_a_loop, assigned_on_one_way])
def test_a_run_asks_whether_a_name_was_assigned(f: Any) -> None:
    traced = converted(f, input_signature=[gt.TensorSpec([None])])
    np.testing.assert_array_equal(traced(X), f(X))
    fails = gt.zeros(0) if f is assigned_in_a_loop else -X
    with pytest.raises(UnboundLocalError):
        f(fails)
    name = "last" if f is assigned_in_a_loop else "y"
    line = line_of(f, "return")
    with pytest.raises(UnboundLocalError, match=f"{FILE}:{line}: '{name}' is read before it is"):
        traced(fails)


# -- lines -----------------------------------------------------------------------------------------


def helper(v):
    w = v * 2.0
    return w @ w @ w


def fails_in_a_helper(x):
    total = x[0]
    for e in x:
        if e > 0:
            total = total + helper(e)
    return total


def test_tracebacks_show_the_lines_of_the_source() -> None:
    with pytest.raises(ValueError, match="matmul") as raised:
        converted(fails_in_a_helper)(X)
    frames = traceback.extract_tb(raised.value.__traceback__)
    mine = [(f.lineno, f.line) for f in frames if f.filename == __file__]
    wanted = [(fails_in_a_helper, "for e"), (fails_in_a_helper, "if e")]
    wanted += [(fails_in_a_helper, "total = total"), (helper, "return w")]
    assert [line_of(*place) for place in wanted] == [line for line, _ in mine[1:]]
    assert mine[-1][1] == "return w @ w @ w"


def test_errors_of_a_trace_name_the_line_of_a_converted_callee() -> None:
    def sized(v):
        n = v.shape[0]
        return [e for e in range(n)]  # noqa: C416

    def f(x):
        if x[0] > 0:
            return x * len(sized(x))
        return x

    traced = converted(f, input_signature=[gt.TensorSpec([None])])
    with pytest.raises(TraceError, match=rf"{FILE}:{line_of(sized, 'return')}: "):
        traced(X)


def test_an_error_raised_on_one_way_says_when_it_is_raised() -> None:
    def f(x):
        if x[0] < 0:
            raise RuntimeError("negative")
        return x

    words = "RuntimeError: negative; this is raised while both branches of the 'if' are traced"
    with pytest.raises(TraceError, match=words) as raised:
        converted(f)(X)
    assert isinstance(raised.value.__cause__, RuntimeError)


# -- print and assert ------------------------------------------------------------------------------


def talks(x):
    print("start", x[0], sep=": ")
    total = x[0]
    for e in x:
        if e > 0:
            print(f"e = {e:.1f}", [e, "end"], end=";\n")
            total = total * e
    assert total < 100.0, f"the total is {total:.1f}"
    return total


@pytest.mark.parametrize("executor", ["default", "plain", "planned", "fused"])
def test_what_is_traced_is_printed_in_each_run(executor: str, capsys: Any) -> None:
    traced = converted(talks, executor=executor)
    for x in (X, 2.0 * X):
        talks(x)
        wanted = capsys.readouterr().out
        assert wanted.count("\n") == 3
        traced(x)
        assert capsys.readouterr().out == wanted


def test_gradients_of_every_order_print_once(capsys: Any) -> None:
    traced = converted(talks)
    np.testing.assert_allclose(gt.hessian(traced)(X), gt.hessian(talks)(X), rtol=1e-6)
    capsys.readouterr()
    slope = gt.function(gt.grad(traced))
    slope(X)
    capsys.readouterr()
    np.testing.assert_allclose(slope(X), gt.grad(talks)(X), rtol=1e-6)
    assert capsys.readouterr().out.count("start") == 2  # one by each


def test_a_check_holds_in_each_run() -> None:
    traced = converted(talks)
    traced(X)
    with pytest.raises(AssertionError, match=r"^the total is 108\.0$"):
        traced(gt.constant([6.0, 3.0, 1.0]))


def test_checks_and_prints_are_saved(tmp_path: Path, capsys: Any) -> None:
    module = gt.Module()
    module.f = converted(talks, input_signature=[gt.TensorSpec([None])])
    gt.save(module, tmp_path / "m.h5")
    capsys.readouterr()  # of the Python code that the file is compared with
    loaded = gt.load(tmp_path / "m.h5").f
    assert gt.saving.verify(tmp_path / "m.h5").ok
    assert capsys.readouterr().out == ""  # while it is proved, nothing is printed
    loaded(X)
    assert capsys.readouterr().out.startswith("start: Tensor(0.5")
    with pytest.raises(AssertionError, match="the total is 108"):
        loaded(gt.constant([6.0, 3.0, 1.0]))


def test_inside_vmap_effects_are_meant_for_the_examples_that_come_by(capsys: Any) -> None:
    def f(x):
        if x > 1.0:
            assert x < 10.0
            print("big", x)
            return x * 2.0
        assert x < 1.0
        return x

    batch = gt.vmap(converted(f))
    assert batch(gt.constant([0.5, 3.0, 2.0])).tolist() == [0.5, 6.0, 4.0]
    assert capsys.readouterr().out == "big Tensor([3. 2.], shape=(2,), dtype=float32)\n"
    with pytest.raises(AssertionError):
        batch(gt.constant([0.5, 30.0]))
    assert gt.function(batch)(gt.constant([0.5, 3.0])).tolist() == [0.5, 6.0]


def test_an_assertion_in_a_branch_that_never_runs_is_not_raised() -> None:
    def f(x):
        if x[0] < 0:
            assert False, "negative"  # noqa: B011, PT015
        return x

    traced = converted(f)
    assert traced(X).tolist() == X.tolist()
    with pytest.raises(AssertionError, match="negative"):
        traced(-X)


# -- what is converted -----------------------------------------------------------------------------


class Gate(gt.layers.Layer):
    def call(self, x):
        if gt.sum(x) > 0:
            return x * 2.0
        return x


class Inside(gt.Module):
    def __init__(self):
        self.gates = gt.layers.Sequential([Gate(), Gate()])

    def __call__(self, x, training=None):
        y = self.gates(x)
        if gt.sum(y) > 10.0:
            y = y * 0.0
        return y


def test_layers_and_modules_are_converted_where_they_are_called() -> None:
    module = Inside()
    traced = converted(lambda x: module(x))
    for x in (X, -X, 4.0 * X):
        np.testing.assert_array_equal(traced(x), module(x))
    with pytest.raises(TraceError, match=r"gradtape\.cond"):
        gt.function(lambda x: module(x))(X)  # and nowhere else


def test_a_decorated_method_is_converted() -> None:
    class Model(gt.Module):
        @gt.function(autograph=True)
        def step(self, x):
            return x * 2.0 if x[0] > 0 else x

    model = Model()
    assert model.step(X).tolist() == (X * 2.0).tolist()
    assert model.step(-X).tolist() == (-X).tolist()


def test_functions_inside_follow_the_one_around() -> None:
    @gt.function
    def inner(x):
        return x * 2.0 if x[0] > 0 else x

    assert converted(lambda x: inner(x))(X).tolist() == (X * 2.0).tolist()
    with pytest.raises(TraceError):
        gt.function(lambda x: inner(x))(X)
    kept = gt.function(inner.python_function, autograph=False)
    with pytest.raises(TraceError):
        converted(lambda x: kept(x))(X)


@gt.autograph.do_not_convert
def left_alone(x):
    return x * 2.0 if isinstance(x, gt.Tensor) else x


def test_what_is_not_to_be_converted_is_not() -> None:
    assert converted(lambda x: left_alone(x) if x[0] > 0 else x)(X).tolist() == (X * 2.0).tolist()

    @gt.autograph.do_not_convert
    def decides(x):
        return x if x[0] > 0 else -x

    with pytest.raises(TraceError, match=r"gradtape\.cond"):
        converted(lambda x: decides(x))(X)


def test_lambdas_of_one_line_are_told_apart() -> None:
    first, second = (lambda x: x if x[0] > 0 else -x), (lambda x: x * 3.0 if x[0] > 0 else x)
    assert converted(first)(-X).tolist() == X.tolist()
    assert converted(second)(X).tolist() == (X * 3.0).tolist()


def test_a_middle_term_is_asked_for_once() -> None:
    asked = []

    def middle():
        asked.append(1)
        return 0.5

    assert converted(lambda x: x if 0.0 < middle() < 1.0 else -x)(X).tolist() == X.tolist()
    assert len(asked) == 1


def test_options_of_a_loop() -> None:
    def f(x):
        while gt.sum(x * x) < 1e9:
            gt.autograph.set_loop_options(maximum_iterations=3)
            x = x * 2.0
        for e in x:
            gt.autograph.set_loop_options(maximum_iterations=1)
            x = x + e
        return x

    assert converted(f)(X).tolist() == (8.0 * X + 4.0).tolist()


def test_a_loop_over_a_tensor_is_one_op() -> None:
    traced = converted(lambda x: total_of(x))
    traced(gt.ones(1000))
    assert [n.op.name for n in traced.concrete_functions[0].graph.nodes].count("scan") == 1


def total_of(x):
    total = 0.0
    for e in x:
        total += e
    return total


def test_vmap_of_a_converted_function_goes_each_way() -> None:
    def f(x):
        n = 0
        while x < 10.0:
            x = x * 2.0 if x > 1.0 else x + 1.0
            n += 1
        return x, n

    found = gt.vmap(converted(f))(gt.constant([0.5, 3.0, 20.0]))
    wanted = [f(gt.constant(x)) for x in (0.5, 3.0, 20.0)]
    assert found[0].tolist() == [float(x) for x, _ in wanted]
    assert found[1].tolist() == [n for _, n in wanted]


def test_variables_are_assigned_on_the_way_that_runs() -> None:
    v, steps = gt.Variable(0.0), gt.Variable(0)

    @gt.function(autograph=True)
    def f(x):
        if x > 0:
            v.assign_add(x)
        while v < 10.0:
            v.assign(v * 2.0 + 1.0)
            steps.assign_add(1)
        return v.value

    assert f(gt.constant(3.0)).item() == 15.0
    assert (v.numpy(), steps.numpy()) == (15.0, 2)
    assert f(gt.constant(-3.0)).item() == 15.0
    assert steps.numpy() == 2


# -- what is not converted -------------------------------------------------------------------------


def test_a_function_without_source_runs_as_it_is_and_says_so() -> None:
    scope: dict[str, Any] = {}
    exec("def f(x):\n    return x * 2.0\n", scope)
    traced = converted(scope["f"])
    with pytest.warns(UserWarning, match="'f' runs unconverted.*its source is not available"):
        assert traced(X).tolist() == (X * 2.0).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced(gt.ones(2))  # once


def walrus(x):
    if (y := gt.sum(x)) > 0:
        return y
    return x


def generates(x):
    def items():
        for e in (1.0, 2.0):
            yield x * e

    total = x
    for item in items():
        total = total + item
    return total


def test_what_the_converters_do_not_know_runs_as_it_is() -> None:
    with (
        pytest.warns(UserWarning, match=f"':=' in line {line_of(walrus, 'if')} is not converted"),
        pytest.raises(TraceError),
    ):
        converted(walrus)(X)
    with pytest.warns(UserWarning, match="'yield' in line"):
        assert converted(generates)(X).tolist() == (X * 4.0).tolist()


def test_libraries_are_not_converted() -> None:
    code = gt.autograph.to_code(total_of)
    assert "ag__.for_stmt" in code
    reduced = functools.reduce
    assert (
        converted(lambda x: reduced(lambda a, b: a + b, [x, x, x]))(X).tolist()
        == (X + X + X).tolist()
    )


def test_code_and_functions_can_be_had() -> None:
    assert gt.autograph.to_code(converted(total_of)).startswith("def total_of_1(x):")
    run = gt.autograph.to_graph(total_of)
    assert run(X).item() == total_of(X).item()
    assert gt.function(run)(X).item() == total_of(X).item()
    with pytest.raises(ValueError, match="recursive=False"):
        gt.autograph.to_graph(total_of, recursive=False)
    with pytest.raises(ValueError, match="is not converted"):
        gt.autograph.to_graph(len)


def test_where_a_break_depends_on_a_trace_python_loops_have_a_limit() -> None:
    def f(x):
        n = 0
        for n in iter(int, 1):  # noqa: B007
            if x[0] > 0:
                break
        return n

    with pytest.raises(ValueError, match="more than 256 copies of its body"):
        converted(f)(X)


@gt.function(autograph=True)
def at_the_top(x):
    return x * 2.0 if x[0] > 0 else x


def test_functions_are_pickled_and_copied_with_their_setting() -> None:
    assert pickle.loads(pickle.dumps(at_the_top)) is at_the_top
    twin = pickle.loads(pickle.dumps(converted(total_of)))
    assert twin.autograph is True
    assert twin(X).item() == total_of(X).item()
    assert copy.deepcopy(twin)(X).item() == total_of(X).item()


def leaning(v):
    return v * 2.0 if v[0] > 0 else gt.sum(v) * v


@gt.custom_gradient
def tenfold(v):
    y = v * 1.0 if v[0] > 0 else -v
    return y, lambda g: 10.0 * g


@pytest.mark.parametrize("f", [gt.recompute_grad(leaning), tenfold], ids=["recompute", "custom"])
def test_what_decorators_hold_is_converted(f: Any) -> None:
    traced = converted(lambda x: f(x))
    for v in (X, -X):
        np.testing.assert_allclose(traced(v), f(v), rtol=1e-6)
        slopes = [gt.grad(lambda x, run=run: gt.sum(run(x)))(v) for run in (traced, f)]
        np.testing.assert_allclose(*slopes, rtol=1e-6)


def test_transformed_functions_are_converted() -> None:
    each = gt.vmap(lambda v: v if v > 0 else v**2)
    slope = gt.grad(lambda v: gt.sum(leaning(v)))
    traced = converted(lambda x: each(x) + slope(x))
    np.testing.assert_allclose(traced(X), np.where(X > 0, X, X**2) + 2.0, rtol=1e-6)


def test_a_variable_decides_in_each_run() -> None:
    on = gt.Variable(True)
    traced = converted(lambda x: x * 2.0 if on and on else x)
    assert traced(X).tolist() == (X * 2.0).tolist()
    on.assign(False)
    assert traced(X).tolist() == X.tolist()


def test_and_does_not_ask_for_what_may_fail() -> None:
    def f(x, i):
        return x[i] if i >= 0 and i < x.shape[0] and x[i] > 0 else x[0]

    traced = converted(f)
    for i in (-7, 0, 1, 2, 5):
        assert traced(X, gt.constant(i)).item() == f(X, gt.constant(i)).item()
    inner = [n.op.name for n in traced.concrete_functions[0].graph.nodes]
    assert inner.count("logical_and") + inner.count("cond") >= 2


def test_a_dataset_in_a_trace_is_told() -> None:
    data = gt.data.Dataset(np.arange(6, dtype="float32")).batch(2)

    def f(x):
        for batch in data:
            x = x + gt.sum(batch)
        return x

    with pytest.warns(UserWarning, match="the elements of a dataset become constants"):
        assert converted(f)(gt.constant(0.0)).item() == 15.0


def test_functions_made_by_exec_are_of_the_package_that_they_say() -> None:
    scope: dict[str, Any] = {}
    exec("def made(x):\n    return x * 2.0\n", scope)
    scope["made"].__module__ = "gradtape.compat.tensorflow"
    made = scope["made"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert converted(lambda x: made(x))(X).tolist() == (X * 2.0).tolist()


def inner(x):
    return x * 2.0


def outer(x):
    return inner(x) if x > 0.0 else x


def test_globals_may_have_any_name() -> None:
    traced = gt.function(outer, autograph=True)
    assert [traced(gt.constant(x)).item() for x in (3.0, -3.0)] == [6.0, -3.0]
