"""PyTorch's functions and modules in gradtape programs."""

from __future__ import annotations

import gc
import threading
import weakref
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as gt

torch: Any = pytest.importorskip("torch", reason='pip install "gradtape[torch]"')

from_torch = gt.interop.torch.from_torch


def tensor(*shape: int, seed: int = 0, dtype: str = "float64") -> gt.Tensor:
    draw = np.random.default_rng(seed)
    value: Any = draw.normal(size=shape)
    if dtype.startswith("complex"):
        value = value + 1j * draw.normal(size=shape)
    return gt.constant(np.asarray(value, dtype))


FUNCTIONS: dict[str, Any] = {
    "elementwise": (
        lambda x, w: torch.sin(x * w) * torch.exp(-x),
        lambda x, w: gt.sin(x * w) * gt.exp(-x),
        (tensor(3, 2), tensor(2, seed=1)),
    ),
    "matmul": (
        lambda x, w: torch.tanh(x @ w),
        lambda x, w: gt.tanh(x @ w),
        (tensor(3, 4), tensor(4, 2, seed=1)),
    ),
    "views": (
        lambda x, w: (x.t()[::2] * w).reshape(-1),
        lambda x, w: gt.reshape(gt.transpose(x)[::2] * w, (-1,)),
        (tensor(3, 4), tensor(3, seed=1)),
    ),
    "complex": (
        lambda z, w: z * w * torch.conj(z),
        lambda z, w: z * w * gt.conj(z),
        (tensor(3, dtype="complex128"), tensor(3, seed=1, dtype="complex128")),
    ),
    "scalar": (lambda x, w: x**3 * w, lambda x, w: x**3 * w, (tensor(), tensor(seed=1))),
    "no elements": (lambda x, w: x * w, lambda x, w: x * w, (tensor(0, 3), tensor(3))),
    "same twice": (lambda x, w: x * x * w, lambda x, w: x * x * w, (tensor(3),) * 2),
}


def total(y: Any) -> Any:
    return gt.sum(gt.abs(y) ** 2)


def orders(f: Any, xs: Any) -> list[Any]:
    """Return the results, gradients and second derivatives of a function."""
    places = tuple(range(len(xs)))

    def first(*xs: Any) -> Any:
        return gt.grad(lambda *xs: total(f(*xs)), argnums=places)(*xs)

    second = gt.grad(lambda *xs: sum(total(g) for g in first(*xs)), argnums=places)(*xs)
    return [f(*xs), *first(*xs), *second]


@pytest.mark.parametrize("mode", ["eager", "traced", "traced derivatives", "unknown sizes"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_two_orders_are_those_of_gradtape_alone(name: str, mode: str) -> None:
    theirs, ours, xs = FUNCTIONS[name]
    f = from_torch(theirs)
    if mode == "traced":
        found = orders(gt.function(f), xs)
    elif mode == "unknown sizes":
        specs = [gt.TensorSpec([None] * x.ndim, x.dtype) for x in xs]
        found = orders(gt.function(f, input_signature=specs), xs)
    elif mode == "eager":
        found = orders(f, xs)
    else:
        found = gt.function(lambda *xs: orders(f, xs))(*xs)
    for a, b in zip(found, orders(ours, xs), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-12)


TRANSFORMS: dict[str, Any] = {
    "jvp": lambda f, x: gt.jvp(f, x, x * 2.0),
    "jacobian": lambda f, x: gt.jacobian(f)(x),
    "jacfwd": lambda f, x: gt.jacfwd(f)(x),
    "hessian": lambda f, x: gt.hessian(lambda x: gt.sum(f(x)))(x),
    "hvp": lambda f, x: gt.hvp(lambda x: gt.sum(f(x)), x, x),
    "vjp": lambda f, x: gt.vjp(f, x)[1](x),
    "linearize": lambda f, x: gt.linearize(f, x)[1](x),
    "third order": lambda f, x: gt.grad(
        lambda x: gt.sum(gt.grad(lambda x: gt.sum(gt.grad(lambda x: gt.sum(f(x)))(x) ** 2))(x))
    )(x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_derivatives_of_other_kinds(name: str) -> None:
    x = tensor(3)
    found = TRANSFORMS[name](from_torch(lambda x: torch.sin(x) * x), x)
    expected = TRANSFORMS[name](lambda x: gt.sin(x) * x, x)
    for a, b in zip(
        found if isinstance(found, tuple) else [found],
        expected if isinstance(expected, tuple) else [expected],
        strict=True,
    ):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-12)


dtypes = st.sampled_from(["float32", "float64", "float16", "int32", "uint8", "bool", "complex64"])
arrays = st.tuples(dtypes, st.lists(st.integers(0, 3), max_size=3))


@settings(max_examples=60)
@given(st.lists(arrays, max_size=4), st.booleans())
def test_any_structures_and_dtypes_pass_through(specs: Any, traced: bool) -> None:
    def f(tree: Any, *, factor: int, flag: Any) -> Any:
        return {"a": [x if kind(x) == "bool" else x * factor for x in tree], "flag": flag}

    def kind(x: Any) -> str:
        return str(x.dtype).removeprefix("torch.")

    tree = [
        gt.constant((np.random.default_rng(i).normal(size=shape) * 3).astype(dtype))
        for i, (dtype, shape) in enumerate(specs)
    ]
    call = from_torch(f)
    call = gt.function(call) if traced else call
    with gt.GradientTape() as tape, gt.GradientTape() as other:
        tape.watch(smooth := [x for x in tree if kind(x)[0] in "fc"])
        other.watch(smooth)
        found = call(tree, factor=3, flag="x" if not traced else None)
        expected = f(tree, factor=3, flag=None)
    assert found["flag"] == ("x" if not traced else None)
    ends = [[y for y in z["a"] if kind(y)[0] in "fc"] for z in (found, expected)]
    for a, b in zip(found["a"], expected["a"], strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    if smooth:
        for a, b in zip(tape.gradient(ends[0], smooth), other.gradient(ends[1], smooth)):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_variables_get_gradients_and_unused_inputs_none() -> None:
    v, unused, n = gt.Variable([1.0, 2.0]), gt.Variable(3.0), gt.constant([2, 3])
    with gt.GradientTape() as tape:
        y, whole = from_torch(lambda v, unused, n: (v * n, n + 1))(v, unused, n)
    assert whole.dtype == "int64"
    grads = tape.gradient(y, [v, unused])
    assert grads[0].tolist() == [2.0, 3.0]
    assert grads[1] is None


def test_several_results_of_which_some_are_used() -> None:
    x = tensor(3)
    f = from_torch(lambda x: (torch.sin(x), x * 2.0, {"detached": x.detach() * 3.0}))
    np.testing.assert_allclose(
        gt.grad(lambda x: gt.sum(f(x)[0]))(x).numpy(), np.cos(x.numpy()), rtol=1e-12
    )
    assert gt.grad(lambda x: gt.sum(f(x)[2]["detached"]))(x).tolist() == [0.0] * 3


# -- memory ----------------------------------------------------------------------------------------


def address(x: gt.Tensor) -> int:
    return int(x.array.__array_interface__["data"][0])


@pytest.mark.parametrize("recorded", [False, True])
def test_arguments_and_results_share_memory(recorded: bool) -> None:
    seen: list[int] = []

    def f(x: Any) -> Any:
        y = x * 2.0 + 1.0
        seen[:] = [x.data_ptr(), y.data_ptr()]
        return y

    x = tensor(1000)
    with gt.GradientTape() if recorded else nullcontext():
        y = from_torch(f)(x)
    assert seen == [address(x), address(y)]


def test_what_pytorch_keeps_is_copied_on_the_way_in() -> None:
    state = torch.ones(2)
    kept: list[Any] = []

    def keep(x: Any) -> Any:
        kept.append(x * 2.0)
        return kept[-1]

    x = tensor(2, dtype="float32")
    for f in (lambda x: state, lambda x: state[:], keep, lambda x: keep(x)[:1]):
        y = from_torch(f)(x)
        before = y.tolist()
        state.add_(1.0)
        for k in kept:
            k.add_(1.0)
        assert y.tolist() == before


def test_writing_to_an_argument_is_an_error() -> None:
    x = tensor(2)
    with pytest.raises(RuntimeError, match=r"wrote to argument 0 of shape \[2\] in place"):
        from_torch(lambda x: x.add_(1.0))(x)
    y = tensor(2)
    with pytest.raises(RuntimeError, match="in-place"):
        gt.grad(lambda y: gt.sum(from_torch(lambda x: x.add_(1.0))(y)))(y)
    np.testing.assert_array_equal(y.numpy(), tensor(2).numpy())


class Held:
    """Lives as long as a graph of PyTorch."""


def test_memory_is_freed_with_the_tape() -> None:
    graphs: list[Any] = []

    def f(x: Any) -> Any:
        y = torch.exp(x)
        y.grad_fn.metadata["held"] = held = Held()
        graphs.append(weakref.ref(held))
        return y * y

    x = tensor(3)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = from_torch(f)(x)
    assert graphs[0]() is not None
    tape.gradient(y, x)
    del tape, y
    gc.collect()
    assert graphs[0]() is None


# -- modes and refusals ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_pytorchs_modes_do_not_stop_a_tape(mode: str) -> None:
    x = tensor(3)
    with getattr(torch, mode)():
        found = gt.grad(lambda x: gt.sum(from_torch(torch.sin)(x)))(x)
    np.testing.assert_allclose(found.numpy(), np.cos(x.numpy()), rtol=1e-12)


def test_threads() -> None:
    x, found = tensor(3), [None] * 6
    f = from_torch(lambda x: torch.sin(x) * x)

    def work(i: int) -> None:
        for _ in range(10):
            found[i] = gt.grad(lambda x: gt.sum(f(x) * float(i)))(x).numpy()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    expected = np.cos(x.numpy()) * x.numpy() + np.sin(x.numpy())
    for i, g in enumerate(found):
        np.testing.assert_allclose(g, expected * i, rtol=1e-12)


def test_errors_cross() -> None:
    def fail(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        from_torch(fail)(tensor(2))
    with pytest.raises(KeyError, match="mine"):
        gt.function(from_torch(fail, results=gt.TensorSpec([2], "float64")))(tensor(2))


def test_a_batch_of_gradtape_is_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"sin computes in PyTorch.*whole batch"):
        gt.vmap(from_torch(torch.sin))(tensor(3, 2))


def test_captured_tensors_that_require_gradients_are_refused() -> None:
    w = torch.ones(2, dtype=torch.float64, requires_grad=True)
    x = tensor(2)
    for f in (lambda x: x * w, lambda x: (x * 1.0, w)):
        with pytest.raises(TypeError, match=r"not its arguments \(of shape \[2\]\)"):
            gt.grad(lambda x, f=f: total_of(f, x))(x)
    assert from_torch(lambda x: x * w)(x).tolist() == x.tolist()
    with pytest.raises(TypeError, match="pass a gradtape tensor or variable"):
        from_torch(torch.mul)(x, w)


def total_of(f: Any, x: Any) -> Any:
    found = from_torch(f)(x)
    return sum(gt.sum(y) for y in (found if isinstance(found, tuple) else [found]))


def test_results_that_gradtape_lacks_are_refused() -> None:
    with pytest.raises(TypeError, match=r"no tensors of torch.bfloat16"):
        from_torch(lambda x: x.bfloat16())(tensor(2))


def test_a_trace_of_a_function_whose_shapes_depend_on_values_needs_them() -> None:
    f = gt.function(from_torch(lambda x: x[x > 0]))
    with pytest.raises(TypeError, match="pass results="):
        f(tensor(3))
    g = gt.function(from_torch(lambda x: x[x > 0], results=gt.TensorSpec([None], "float64")))
    x = tensor(5)
    np.testing.assert_array_equal(g(x).numpy(), x.numpy()[x.numpy() > 0])


def test_a_trace_is_not_saved(tmp_path: Any) -> None:
    class M(gt.Module):
        @gt.function
        def __call__(self, x: Any) -> Any:
            return from_torch(torch.sin)(x)

    m = M()
    m(tensor(2))
    with pytest.raises(gt.saving.SaveError, match="host_call"):
        gt.save(m, tmp_path / "m.h5")


# -- modules ---------------------------------------------------------------------------------------


def network() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh(), torch.nn.Linear(4, 1)
    ).double()


@pytest.mark.parametrize("traced", [False, True])
def test_a_module_trains_as_in_pytorch(traced: bool) -> None:
    theirs, x = network(), tensor(8, 3)
    ours = from_torch(network())
    assert set(ours.named_variables) == {
        "weights/" + name.replace(".", "/") for name in theirs.state_dict()
    }
    goal = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=0.9)
    optimizer = gt.training.SGD(0.1, momentum=0.9)

    def step(x: Any) -> Any:
        with gt.GradientTape() as tape:
            loss = gt.mean(ours(x, training=True) ** 2)
        variables = ours.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    run = gt.function(step) if traced else step
    for _ in range(5):
        goal.zero_grad()
        loss = (theirs(torch.from_numpy(x.numpy().copy())) ** 2).mean()
        loss.backward()
        goal.step()
        np.testing.assert_allclose(run(x).item(), loss.item(), rtol=1e-10)
    for name, value in theirs.state_dict().items():
        found = ours.named_variables["weights/" + name.replace(".", "/")]
        np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=1e-9, atol=1e-12)
    copied = ours.update_module()
    for name, value in copied.state_dict().items():
        torch.testing.assert_close(value, theirs.state_dict()[name])


def test_a_module_keeps_its_mode_and_its_weights() -> None:
    net = network()
    net[1].eval()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    ours, x = from_torch(net), tensor(4, 3)
    ours(x, training=True)
    ours(x)
    assert net.training
    assert not net[1].training
    for k, v in net.state_dict().items():
        assert torch.equal(v, before[k])


@pytest.mark.parametrize("traced", [False, True])
def test_random_numbers_of_a_backward_pass_are_those_of_the_call(traced: bool) -> None:
    drop = from_torch(torch.nn.Dropout(0.5))
    x = gt.ones(100)

    def both(x: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = drop(x, training=True)
        return y, tape.gradient(y, x)

    run = gt.function(both) if traced else both
    results = []
    for _ in range(3):
        y, g = run(x)
        np.testing.assert_array_equal(y.numpy(), g.numpy())
        results.append(y.numpy())
    assert not np.array_equal(results[0], results[1])


def test_frozen_parameters_do_not_train() -> None:
    net = torch.nn.Linear(2, 2)
    net.bias.requires_grad_(False)
    assert [v.name for v in from_torch(net).trainable_variables] == ["weight"]


def test_shared_parameters_are_one_variable() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    net[1].weight = net[0].weight
    ours, x = from_torch(net), gt.ones((1, 2))
    assert len(ours.variables) == 3
    np.testing.assert_allclose(ours(x).numpy(), net(torch.ones(1, 2)).detach().numpy(), rtol=1e-6)


def test_weights_are_saved_and_loaded(tmp_path: Any) -> None:
    a, b = from_torch(network()), from_torch(network())
    for v in b.trainable_variables:
        v.assign(v * 2.0)
    a.save_weights(tmp_path / "w.h5")
    b.load_weights(tmp_path / "w.h5")
    x = tensor(2, 3)
    np.testing.assert_array_equal(a(x, training=False).numpy(), b(x, training=False).numpy())
