"""gt.profile() tells by op, kernel, line and layer what took time, and leaves nothing behind."""

from __future__ import annotations

import contextvars
import json
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.cli import main


def slow(seconds: float) -> Callable[..., Any]:
    """Return an op's kernel that takes so long."""

    def kernel(xp: Any, x: Any) -> Any:
        time.sleep(seconds)
        return x + 0.0

    return kernel


def network() -> tuple[Any, Any, Any]:
    random = np.random.default_rng(0)
    model = gt.layers.Sequential(
        [gt.layers.Dense(8, activation="relu"), gt.layers.BatchNorm(), gt.layers.Dense(3)]
    )
    x = gt.constant(random.random((16, 5), dtype="float32"))
    model(x)
    return model, x, gt.constant(random.integers(0, 3, 16))


def step_of(model: Any) -> Callable[..., Any]:
    optimizer = gt.training.Adam()

    def step(x: Any, labels: Any) -> None:
        with gt.GradientTape() as tape:
            logits = model(x, training=True)
            losses = gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            loss = gt.mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    return step


def calls(p: Any, by: str = "op") -> dict[tuple[str, str], int]:
    return {(row.name, row.phase): row.calls for row in p.rows(by)}


def test_eager_ops_are_told_by_name_forward_and_backward_apart() -> None:
    x = gt.Variable(np.ones((4, 4), "float32"))
    with gt.profile() as p:
        with gt.GradientTape() as tape:
            y = gt.sum(gt.sin(x) * gt.exp(x))
        tape.gradient(y, x)
    found = calls(p)
    for name in ("sin", "exp", "multiply", "sum"):
        assert found[name, "forward"] == 1
        assert found[name, "backward"] >= 1
    assert ("cos", "backward") not in found  # it is in the rule of sin
    kernels = calls(p, "kernel")
    assert kernels["cos", "backward"] == 1
    assert kernels["sin, its rule", "backward"] == 1


@pytest.mark.parametrize("by", ["op", "kernel", "line"])
def test_rows_add_up_to_what_was_measured(by: str) -> None:
    model, x, labels = network()
    with gt.profile() as p:
        step_of(model)(x, labels)
    rows = p.rows(by)
    assert sum(row.seconds for row in rows) == pytest.approx(p.measured)
    assert sum(row.share for row in rows) == pytest.approx(1.0)
    assert 0.0 < p.measured <= p.seconds
    assert [row.seconds for row in rows] == sorted((row.seconds for row in rows), reverse=True)


@pytest.mark.parametrize("by", ["op", "kernel", "line"])
def test_rows_add_up_where_rules_run_compiled_functions(by: str) -> None:
    fold = gt.function(lambda x: gt.scan(lambda c, r: (gt.tanh(c + r), c), gt.zeros(3), x)[0])
    with gt.profile() as p:  # the rule of scan has a plan made that reports its steps
        gt.grad(lambda x: gt.sum(fold(x) ** 2))(gt.ones((5, 3)))
    rows = p.rows(by)
    assert sum(row.seconds for row in rows) == pytest.approx(p.measured)
    assert by != "op" or [row.calls for row in rows if row[:2] == ("scan", "backward")] == [1]


def test_a_slow_kernel_is_first_and_its_time_is_its_own() -> None:
    op = gt.core.extend.Op("tests::slow", slow(0.05), gradients={"x": lambda g: g})

    class Plugin:
        @gt.hookimpl
        def gradtape_ops(self) -> list[Any]:
            return [op]

    gt.register_plugin(Plugin(), "slow")
    try:
        x = gt.ones((10, 10))
        with gt.profile() as p:
            gt.sin(op(x))
            op(x)
    finally:
        gt.unregister_plugin("slow")
    first = p.rows()[0]
    assert (first.name, first.calls, first.bytes) == ("tests::slow", 2, 800)
    assert first.seconds >= 0.1
    assert first.mean == pytest.approx(first.seconds / 2)


def test_lines_are_the_users_and_a_gradient_is_under_the_line_of_its_op() -> None:
    x = gt.Variable(np.ones(3, "float32"))
    with gt.profile() as p, gt.GradientTape() as tape:
        y = gt.sin(x)  # the line
        z = gt.sum(y)
    with gt.profile() as q:
        with gt.GradientTape() as tape:
            y = gt.sin(x)
            z = gt.sum(y)
        tape.gradient(z, x)
    source = Path(__file__).read_text().splitlines()
    where = f"{Path(__file__).name}:{source.index('        y = gt.sin(x)  # the line') + 1}"
    assert calls(p, "line")[where, "forward"] == 1
    backward = [name for name, phase in calls(q, "line") if phase == "backward"]
    sines = [i + 1 for i, text in enumerate(source) if text == "            y = gt.sin(x)"]
    assert f"{Path(__file__).name}:{sines[-1]}" in backward


def test_layers_are_nested_and_the_outer_one_contains_the_inner_ones() -> None:
    model, x, labels = network()
    with gt.profile() as p:
        step_of(model)(x, labels)
    rows = {(row.name, row.phase): row for row in p.rows("layer")}
    for phase in ("forward", "backward"):
        inner = [
            rows[f"Sequential/{name}", phase].seconds for name in ("Dense", "BatchNorm", "Dense_2")
        ]
        assert rows["Sequential", phase].seconds == pytest.approx(sum(inner), abs=1e-4)
        assert all(seconds > 0 for seconds in inner)


def test_a_layer_may_name_itself_as_it_likes() -> None:
    class Halved(gt.Module):
        def __call__(this, x: Any) -> Any:
            return x / 2.0

    with gt.profile() as p:
        Halved()(gt.ones(3))
    assert [row.name for row in p.rows("layer")] == ["Halved"]


@pytest.mark.parametrize("executor", ["default", "plain", "fused"])
def test_a_compiled_function_is_told_by_its_steps(executor: str) -> None:
    if executor == "fused":
        pytest.importorskip("llvmlite")
    model, x, labels = network()
    step = gt.function(step_of(model), executor=executor)
    step(x, labels)
    before = [v.numpy().copy() for v in model.variables]
    with gt.profile() as p:
        for _ in range(3):
            step(x, labels)
    found = calls(p)
    assert found[f"step ({executor})", "compiled"] == 3
    assert len(found) > 10
    assert {phase for _, phase in found} == {"compiled"}
    if executor == "default":
        assert any(name.startswith("pack of ") for name, _ in found)
    else:
        assert found["matmul", "compiled"] >= 3
    assert any(not np.array_equal(a, v.numpy()) for a, v in zip(before, model.variables))


@pytest.mark.parametrize("executor", ["default", "plain"])
def test_a_profiled_step_computes_the_same(executor: str) -> None:
    found = []
    for profiled in (False, True):
        gt.random.set_seed(0)
        model, x, labels = network()
        step = gt.function(step_of(model), executor=executor)
        step(x, labels)
        with gt.profile() if profiled else gt.executor("default"):
            for _ in range(3):
                step(x, labels)
        step(x, labels)
        found.append([v.numpy() for v in model.variables])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_loops_and_branches_in_compiled_functions_are_told_within_it() -> None:
    @gt.function
    def f(x: Any) -> Any:
        return gt.scan(lambda c, _: (gt.sin(c), c), x, gt.zeros(3))[0]

    x = gt.ones(2)
    f(x)
    with gt.profile() as p:
        f(x)
    assert calls(p)["sin", "compiled"] == 3
    assert sum(row.seconds for row in p.rows()) == pytest.approx(p.measured)


def test_the_optimizer_has_a_row() -> None:
    model, x, labels = network()
    with gt.profile() as p:
        step_of(model)(x, labels)
    assert calls(p)["Adam", "other"] == 1


def test_memory_peaks_are_measured_if_asked_for() -> None:
    x = gt.ones((256, 256))
    with gt.profile(memory=True) as p:
        gt.sum(x + 1.0)
    peaks = {row.name: row.peak for row in p.rows()}
    assert 2**17 < peaks["add"] < 2**19
    assert peaks["sum"] < 2**16
    assert "peak" in p.table()
    with gt.profile() as p:
        gt.sum(x + 1.0)
    assert "peak" not in p.table()


def test_after_the_block_ops_run_the_kernels_that_they_ran_before() -> None:
    x = gt.ones(3)
    sin = gt.core.extend.ops["sin"]
    with gt.profile() as p:
        gt.sin(x)
        assert sin.resolve([x.array]) is not np.sin
    gt.sin(x)  # the first run of a kernel is checked
    gt.sin(x)
    assert sin._kernels[np.ndarray] is np.sin
    assert calls(p) == {("sin", "forward"): 1}


def test_an_error_in_the_block_passes_and_what_ran_before_it_is_told() -> None:
    x = gt.ones((2, 3))
    p = gt.profile()

    def block() -> None:
        with p:
            gt.sin(x)
            x @ x

    with pytest.raises(ValueError, match="matmul"):
        block()
    assert calls(p)["sin", "forward"] == 1
    with gt.profile() as again:
        gt.sin(x)
    assert calls(again) == {("sin", "forward"): 1}


def test_profiles_do_not_nest_and_run_once() -> None:
    with gt.profile() as p:
        with pytest.raises(RuntimeError, match="cannot be nested"), gt.profile():
            pass
        gt.sin(gt.ones(3))
    assert calls(p)["sin", "forward"] == 1
    with pytest.raises(RuntimeError, match="has already been used"), p:
        pass
    with pytest.raises(ValueError, match="by must be one of 'op'"):
        p.rows("color")


def test_threads_have_profiles_of_their_own_and_nobody_elses_ops() -> None:
    found: dict[int, Any] = {}
    inside, ready = threading.Barrier(3), threading.Barrier(3)

    def work(number: int) -> None:
        x = gt.ones(4)
        with gt.profile() as p:
            inside.wait()
            for _ in range(number):
                gt.sin(x)
            ready.wait()
        found[number] = p

    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 5)]
    for thread in threads:
        thread.start()
    inside.wait()
    for _ in range(20):
        gt.sin(gt.ones(4))  # nobody's
    ready.wait()
    for thread in threads:
        thread.join()
    for number, p in found.items():
        assert calls(p)["sin", "forward"] == number


def test_a_thread_in_a_copy_of_the_context_is_measured_and_may_outlive_it() -> None:
    x = gt.ones(4)
    f = gt.function(lambda x: gt.sin(x) * 2.0)
    f(x)
    with gt.profile() as p:
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(gt.sin, x))
        thread.start()
        thread.join()
    assert calls(p) == {("sin", "forward"): 1}
    assert context.run(f, x).numpy() == pytest.approx(2 * np.sin(np.ones(4)))
    assert calls(p) == {("sin", "forward"): 1}

    def anew() -> Any:
        with gt.profile() as q:
            gt.cos(x)
        return q

    assert calls(context.run(anew)) == {("cos", "forward"): 1}


def test_derivatives_of_all_kinds_run_under_it() -> None:
    x = gt.constant([1.0, 2.0])

    def f(x: Any) -> Any:
        return gt.sum(gt.sin(x) * x[0])

    with gt.profile() as p:
        np.testing.assert_allclose(gt.hessian(f)(x).numpy(), gt.jacfwd(gt.grad(f))(x).numpy())
        gt.vmap(gt.sin)(gt.ones((3, 2)))
        with gt.debug.nan_guard():
            gt.grad(f)(x)
    assert calls(p)["sin", "forward"] >= 3
    with gt.profile() as p, gt.GradientTape() as tape:
        tape.watch(x)
        y = x[0] * x[1] + x[0]
        picked = tape.gradient(y, x)
    assert picked.tolist() == [3.0, 1.0]


def test_events_beyond_the_limit_are_counted_and_told() -> None:
    x = gt.ones(3)
    with gt.profile(limit=5) as p:
        for _ in range(8):
            gt.sin(x)
    assert calls(p)["sin", "forward"] == 5
    assert p.dropped == 3
    assert "3 events beyond the limit" in str(p)


def test_json_and_the_timeline_hold_what_the_table_does(tmp_path: Path) -> None:
    x = gt.ones((2, 2))
    with gt.profile() as p:
        gt.sin(x @ x)
    told = json.loads(p.to_json(tmp_path / "rows.json"))
    assert told == json.loads((tmp_path / "rows.json").read_text())
    assert {row["name"] for row in told["rows"]["op"]} == {"matmul", "sin"}
    assert told["clocks"] == ["host"]
    p.to_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in events] == ["matmul", "sin"]
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in events)
    assert events[0]["ts"] + events[0]["dur"] <= events[1]["ts"]
    assert events[0]["args"]["bytes"] == 16


def test_a_script_is_profiled_by_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, gradtape as gt\n"
        "assert __name__ == '__main__'\n"
        "y = gt.sin(gt.ones(3))\n"
        "print('said', sys.argv[1:])\n"
        "sys.exit(int(sys.argv[1]))\n"
    )
    trace = tmp_path / "trace.json"
    told = ["profile", "--by", "op", "--by", "line", "--trace", str(trace), str(script), "3", "-x"]
    assert main(told) == 3
    out, error = capsys.readouterr()
    assert out == "said ['3', '-x']\n"
    assert "script.py:3" in error
    assert "sin" in error
    assert json.loads(trace.read_text())["traceEvents"]
    assert main(["profile", str(tmp_path / "absent.py")]) == 1
    assert "absent.py" in capsys.readouterr().err


# -- rows for what is no op -----------------------------------------------------------------------


def profiled_fit(**options: Any) -> Any:
    """Return the profile of a short run of ``fit``."""
    model, x, labels = network()
    data = np.tile(x.numpy(), (8, 1)), np.tile(labels.numpy(), 8)
    with gt.profile() as p:
        gt.training.fit(model, data, batch_size=16, epochs=12, seed=0, verbose=False, **options)
    return p


def test_the_steps_of_fit_are_named_and_so_are_tracing_and_planning() -> None:
    p = profiled_fit()
    found = calls(p)
    assert found["training step (default)", "compiled"] > 64
    assert found["tracing training step", "other"] == 1
    assert found["planning training step", "other"] >= 1
    assert ("planning training step", "compiled") not in found
    for by in ("op", "kernel", "layer"):
        names = {name for name, _ in calls(p, by)}
        assert not any("lambda" in name or "watched" in name for name in names)


def test_what_runs_in_no_layer_is_told_by_what_it_is() -> None:
    layers = calls(profiled_fit(), "layer")
    assert ("(all of training step (default))", "compiled") in layers
    assert ("(tracing training step)", "other") in layers
    assert ("(planning training step)", "other") in layers
    layers = calls(profiled_fit(compile=False), "layer")
    assert ("(Adam)", "other") in layers
    assert ("(ops in no layer)", "forward") in layers  # the loss
    assert not any(phase == "compiled" for _, phase in layers)


def test_tables_say_that_compiled_functions_have_no_layers_inside() -> None:
    p = profiled_fit()
    for by in ("line", "layer"):
        assert f"compiled functions have no {by}s of their own" in p.table(by)
    assert "compiled functions have no" not in p.table("op")
    assert "compiled functions have no" not in profiled_fit(compile=False).table("layer")


@pytest.mark.parametrize("executor", ["planned", "plain"])
def test_work_for_the_profile_alone_is_in_no_row(executor: str, monkeypatch: Any) -> None:
    from gradtape.profiler import recording

    excluded = []
    whole = recording.Recorder.excluded

    def excluding(self: Any) -> Any:
        excluded.append(self)
        return whole(self)

    monkeypatch.setattr(recording.Recorder, "excluded", excluding)
    f = gt.function(lambda x: gt.sin(x) * 2.0, executor=executor)
    f(gt.ones(4))
    with gt.profile() as p:
        f(gt.ones(4))
    assert len(excluded) == 1
    assert {phase for _, phase in calls(p)} == {"compiled"}
    assert not any("profile" in name for name, _ in calls(p))
    assert sum(row.seconds for row in p.rows()) == pytest.approx(p.measured)


def test_the_cost_of_recording_is_taken_off(monkeypatch: Any) -> None:
    from gradtape.profiler import recording

    def seconds(inside: int, around: int) -> tuple[float, float]:
        monkeypatch.setattr(recording, "_costs", lambda memory: (inside, around))
        f = gt.function(lambda x: gt.sin(x) + gt.cos(x), executor="plain")
        x = gt.ones(100_000)
        f(x)
        with gt.profile() as p:
            f(x)
        kernels = sum(row.seconds for row in p.rows() if "(" not in row.name)
        return kernels, p.measured - kernels

    kernels, rest = seconds(0, 0)
    assert kernels > 0
    assert rest > 0
    assert seconds(10**10, 0)[0] == 0.0  # more than they took
    kernels, rest = seconds(0, 10**10)
    assert kernels > 0
    assert rest == pytest.approx(0.0, abs=1e-15)  # a difference of sums


@pytest.mark.parametrize("memory", [False, True])
def test_the_cost_of_recording_is_measured_in_microseconds(memory: bool) -> None:
    from gradtape.profiler.recording import _costs

    with gt.profile(memory=memory):
        inside, around = _costs(memory)
    assert 0 < inside < 10**6
    assert 0 <= around < 10**6


def test_a_profile_keeps_no_tensor_of_a_running_call_alive() -> None:
    kept = []

    class Doubling(gt.layers.Layer):
        def call(self, x: Any) -> Any:
            doubled = x * 2.0
            seen = weakref.ref(doubled)
            result = doubled + 1.0
            del doubled
            kept.append(seen())
            return result

    with gt.profile():
        Doubling()(np.ones(3))
    assert kept == [None]
