"""gradtape's functions and models in PyTorch programs."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as gt

torch: Any = pytest.importorskip("torch", reason='pip install "gradtape[torch]"')

to_torch = gt.interop.torch.to_torch


def tensor(*shape: int, dtype: Any = None, seed: int = 0, grad: bool = True) -> Any:
    x = torch.randn(
        shape, dtype=dtype or torch.float64, generator=torch.Generator().manual_seed(seed)
    )
    return x.requires_grad_(grad)


#: By name: a function of gradtape, the same of PyTorch, and arguments.
FUNCTIONS: dict[str, Any] = {
    "elementwise": (
        lambda x, w: gt.sin(x * w) * gt.exp(-x),
        lambda x, w: torch.sin(x * w) * torch.exp(-x),
        lambda: (tensor(3, 2), tensor(2, seed=1)),
    ),
    "matmul": (
        lambda x, w: gt.tanh(x @ w),
        lambda x, w: torch.tanh(x @ w),
        lambda: (tensor(3, 4), tensor(4, 2, seed=1)),
    ),
    "reduction": (
        lambda x: gt.logsumexp(x * x, axis=0),
        lambda x: torch.logsumexp(x * x, 0),
        lambda: (tensor(4, 3),),
    ),
    "compiled": (
        gt.function(lambda x, w: gt.nn.softmax(x * w)),
        lambda x, w: torch.softmax(x * w, -1),
        lambda: (tensor(3, 2), tensor(2, seed=1)),
    ),
    "complex": (
        lambda z, w: gt.real(z * w * gt.conj(z)) + gt.imag(z * z),
        lambda z, w: torch.real(z * w * torch.conj(z)) + torch.imag(z * z),
        lambda: (tensor(3, dtype=torch.complex128), tensor(3, dtype=torch.complex128, seed=1)),
    ),
    "scalar": (lambda x: x**3, lambda x: x**3, lambda: (tensor(),)),
    "no elements": (lambda x: x * x, lambda x: x * x, lambda: (tensor(0, 3),)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_two_orders_are_those_of_pytorch_alone(name: str) -> None:
    ours, theirs, arguments = FUNCTIONS[name]

    def both_orders(f: Any) -> list[Any]:
        xs = arguments()
        y = f(*xs)
        first = torch.autograd.grad(y.sum(), xs, create_graph=True)
        total = sum((g * g.conj()).real.sum() for g in first)
        second = torch.autograd.grad(total, xs, allow_unused=True)
        zeros = [torch.zeros_like(x) for x in xs]
        second = [z if g is None else g for g, z in zip(second, zeros, strict=True)]
        return [y, *first, *second]

    for a, b in zip(both_orders(to_torch(ours)), both_orders(theirs), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["elementwise", "matmul", "compiled"])
def test_pytorch_checks_two_orders_by_finite_differences(name: str) -> None:
    ours, _, arguments = FUNCTIONS[name]
    assert torch.autograd.gradcheck(to_torch(ours), arguments())
    assert torch.autograd.gradgradcheck(to_torch(ours), arguments())


def test_a_third_order() -> None:
    x = tensor(3)
    y = to_torch(lambda x: x**4)(x).sum()
    for _ in range(3):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    torch.testing.assert_close(y, 24 * x)


dtypes = st.sampled_from(["float32", "float64", "float16", "int32", "int64", "bool", "complex64"])
leaves = st.one_of(
    st.tuples(dtypes, st.lists(st.integers(0, 3), max_size=3)), st.integers(-3, 3), st.none()
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        st.tuples(inner, inner),
    ),
    max_leaves=6,
)


def is_spec(tree: Any) -> bool:
    return isinstance(tree, tuple) and len(tree) == 2 and isinstance(tree[0], str)


def made(tree: Any, seed: list[int]) -> Any:
    if is_spec(tree):
        seed[0] += 1
        dtype, shape = getattr(torch, tree[0]), tree[1]
        x = torch.randn(shape, generator=torch.Generator().manual_seed(seed[0]))
        x = (x * 3).to(dtype)
        return x.requires_grad_() if x.is_floating_point() or x.is_complex() else x
    if isinstance(tree, dict):
        return {k: made(v, seed) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(made(x, seed) for x in tree)
    return tree


def doubled(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {k: doubled(v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(doubled(x) for x in tree)
    if isinstance(tree, (gt.Tensor, torch.Tensor)):
        dtype = str(tree.dtype).removeprefix("torch.")
        return tree if dtype == "bool" else tree * tree
    return tree


def flat(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [y for k in sorted(tree) for y in flat(tree[k])]
    if isinstance(tree, (list, tuple)):
        return [y for x in tree for y in flat(x)]
    return [tree]


@settings(max_examples=60)
@given(trees, trees)
def test_any_structures_and_dtypes_pass_through(first: Any, second: Any) -> None:
    ours, theirs = ((made(first, seed), made(second, seed)) for seed in ([0], [0]))
    a = to_torch(lambda x, *, key: (doubled(x), {"key": doubled(key)}))(ours[0], key=ours[1])
    b = (doubled(theirs[0]), {"key": doubled(theirs[1])})
    total = 0.0
    pairs = list(zip(flat(a), flat(b), strict=True))
    for y, z in pairs:
        if not isinstance(z, torch.Tensor):
            assert y == z
            continue
        assert y.dtype == z.dtype
        assert y.shape == z.shape
        torch.testing.assert_close(y, z)
        assert y.requires_grad == z.requires_grad
    for results in (0, 1):
        ends = [p[results] for p in pairs if isinstance(p[1], torch.Tensor) and p[1].requires_grad]
        total = sum((y.abs() ** 2).sum().to(torch.float64) for y in ends)
        if ends:
            total.backward()
    for x, y in zip(flat(list(ours)), flat(list(theirs)), strict=True):
        if isinstance(x, torch.Tensor) and x.requires_grad:
            torch.testing.assert_close(x.grad, y.grad, rtol=2e-3, atol=2e-3)


def test_results_and_inputs_without_influence_have_no_gradient() -> None:
    x, unused, number = tensor(2), tensor(2, seed=1), torch.tensor([1, 2])
    f = to_torch(lambda x, unused, n: {"a": x * n, "b": x * 3.0, "n": n + 1, "none": None})
    found = f(x, unused, number)
    assert found["none"] is None
    assert not found["n"].requires_grad
    found["a"].sum().backward()
    assert unused.grad is None
    torch.testing.assert_close(x.grad, number.double())


def test_broadcast_and_strided_arguments() -> None:
    base = tensor(4, 6)
    for view in (base.t(), base[:, ::2], base[1].expand(5, 6), base.flip(0)[::3]):
        x = view.detach().requires_grad_()
        y = to_torch(lambda x: x * x)(x)
        torch.testing.assert_close(y, x * x)
        y.sum().backward()
        torch.testing.assert_close(x.grad, 2 * x.detach())
    z = tensor(3, dtype=torch.complex128, grad=False)
    torch.testing.assert_close(to_torch(lambda z: z * 1.0)(z.conj()), z.conj().resolve_conj())


# -- memory ----------------------------------------------------------------------------------------


def test_arguments_and_results_share_memory() -> None:
    seen: list[int] = []

    def f(x: Any) -> Any:
        seen.append(x.array.__array_interface__["data"][0])
        y = x * 2.0 + 1.0
        seen.append(y.array.__array_interface__["data"][0])
        return y

    for grad in (False, True):
        x = tensor(1000, grad=grad)
        y = to_torch(f)(x)
        assert seen[-2:] == [x.data_ptr(), y.data_ptr()]


def test_what_gradtape_keeps_is_copied_on_the_way_out() -> None:
    constant, variable = gt.constant([1.0, 2.0]), gt.Variable([1.0, 2.0], trainable=False)
    kept: list[gt.Tensor] = []

    def keep(x: Any) -> Any:
        kept.append(x + 1.0)
        return kept[0]

    x = torch.ones(2)
    for f in (lambda x: constant, lambda x: variable, keep, lambda x: x, lambda x: x[::-1]):
        y = to_torch(f)(x)
        before = [constant.tolist(), variable.tolist(), [k.tolist() for k in kept], x.tolist()]
        y.add_(5.0)
        assert before == [
            constant.tolist(),
            variable.tolist(),
            [k.tolist() for k in kept],
            x.tolist(),
        ]


def test_writing_to_a_result_leaves_its_gradient_correct() -> None:
    x = tensor(3)
    y = to_torch(gt.exp)(x)  # whose rule reads the result
    with torch.no_grad():
        y.mul_(0.0)
    y.sum().backward()
    torch.testing.assert_close(x.grad, x.detach().exp())


def test_an_argument_that_a_function_keeps_has_its_own_memory() -> None:
    kept: list[gt.Tensor] = []

    def f(x: Any) -> Any:
        kept.append(x)
        return x * 2.0

    x = torch.ones(2)
    y = to_torch(f)(x)
    x.add_(1.0)
    assert kept[0].tolist() == [1.0, 1.0]
    assert y.tolist() == [2.0, 2.0]


def test_an_argument_in_a_variable_is_refused() -> None:
    last = gt.Variable([0.0, 0.0], trainable=False)

    def keep(x: Any) -> Any:
        last.assign(x)
        return x * 2.0

    for f in (keep, gt.function(keep)):
        with pytest.raises(RuntimeError, match=r"memory of argument 0, of shape \[2\].*x.clone"):
            to_torch(f)(torch.ones(2))


def test_a_changed_argument_is_noticed() -> None:
    for grad in (True, False):
        other = tensor(3, seed=1, grad=False)
        x = tensor(3, grad=True)
        z = x * 1.0
        y = to_torch(lambda a, b: a * b)(z, other)
        with torch.no_grad():
            (z if grad else other).add_(1.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_memory_is_freed_with_the_graph() -> None:
    arrays: list[Any] = []

    def f(x: Any) -> Any:
        y = gt.exp(x)
        arrays.append(weakref.ref(y))
        return y * y

    x = tensor(3)
    y = to_torch(f)(x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()
    del y
    gc.collect()
    assert arrays[0]() is None


# -- PyTorch's modes -------------------------------------------------------------------------------


def test_no_grad_inference_mode_and_frozen_inputs() -> None:
    x = tensor(3)
    f = to_torch(gt.sin)
    with torch.no_grad():
        assert not f(x).requires_grad
    with torch.inference_mode():
        assert f(x).is_inference()
        assert not f(torch.ones(2)).requires_grad
    assert not f(x.detach()).requires_grad


def test_backward_passes_in_other_threads() -> None:
    x = tensor(3)
    f = to_torch(lambda x: gt.sin(x) * x)
    found: list[Any] = [None] * 8

    def work(i: int) -> None:
        for _ in range(20):
            (found[i],) = torch.autograd.grad((f(x) * i).sum(), x)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = torch.cos(x) * x + torch.sin(x)
    for i, g in enumerate(found):
        torch.testing.assert_close(g, expected.detach() * i)


def test_a_backward_pass_in_another_thread_than_the_call() -> None:
    x = tensor(3)
    y = to_torch(gt.sin)(x).sum()
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    torch.testing.assert_close(x.grad, x.detach().cos())


def test_an_open_tape_outside_sees_none_of_it() -> None:
    x, w = tensor(3), gt.constant(2.0)
    with gt.GradientTape() as tape:
        tape.watch(w)
        y = to_torch(gt.sin)(x)
        z = w * 3.0
    y.sum().backward()
    torch.testing.assert_close(x.grad, x.detach().cos())
    assert tape.gradient(z, w).item() == 3.0


def test_inside_a_trace_it_computes_at_once() -> None:
    x = tensor(3)
    seen = []

    @gt.function
    def traced(w: Any) -> Any:
        seen.append(to_torch(gt.sin)(x))
        return w

    traced(gt.constant(1.0))
    torch.testing.assert_close(seen[0], x.sin())


def test_errors_cross_in_both_passes() -> None:
    def fail(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        to_torch(fail)(tensor(2))

    @gt.custom_gradient
    def late(x: Any) -> Any:
        def grad(g: Any) -> Any:
            raise KeyError("later")

        return x * 1.0, grad

    y = to_torch(late)(tensor(2)).sum()
    with pytest.raises(KeyError, match="later"):
        y.backward()
    assert to_torch(gt.sin)(tensor(2)).shape == (2,)


def test_three_libraries_in_one_function() -> None:
    jax: Any = pytest.importorskip("jax", reason='pip install "gradtape[jax]"')
    bridges = gt.interop.jax
    f = to_torch(bridges.from_jax(bridges.to_jax(lambda x: gt.sin(x) * x)))
    with jax.enable_x64(True):
        assert torch.autograd.gradcheck(f, (tensor(3),))
        assert torch.autograd.gradgradcheck(f, (tensor(3),))


def test_a_result_that_is_an_argument_has_a_gradient() -> None:
    x = tensor(3)
    y, z = to_torch(lambda x: (x, x))(x)
    (y.sum() + 2 * z.sum()).backward()
    assert x.grad.tolist() == [3.0] * 3


def test_custom_gradients_are_used() -> None:
    @gt.custom_gradient
    def clipped(x: Any) -> Any:
        return x * 1.0, lambda g: gt.clip(g, -0.5, 0.5)

    x = tensor(3)
    (to_torch(clipped)(x) * 7.0).sum().backward()
    assert x.grad.tolist() == [0.5] * 3


# -- torch.func and torch.compile ------------------------------------------------------------------

TRANSFORMS: dict[str, Any] = {
    "grad": lambda f, x, w: torch.func.grad(lambda x: f(x, w).sum())(x),
    "vmap": lambda f, x, w: torch.vmap(f, in_dims=(0, None))(x, w),
    "vmap of two": lambda f, x, w: torch.vmap(torch.vmap(f), in_dims=(0, None))(x, w),
    "vmap of grad": lambda f, x, w: torch.vmap(
        torch.func.grad(lambda x, w: f(x, w).sum(), argnums=(0, 1)), in_dims=(0, None)
    )(x, w),
    "grad of vmap": lambda f, x, w: torch.func.grad(
        lambda w: torch.vmap(lambda x: f(x, w))(x).sum()
    )(w),
    "jacrev": lambda f, x, w: torch.func.jacrev(f, argnums=(0, 1))(x, w),
    "jacrev of jacrev": lambda f, x, w: torch.func.jacrev(torch.func.jacrev(f))(x, w),
    "vjp": lambda f, x, w: torch.func.vjp(f, x, w)[1](torch.ones(3, 2, dtype=torch.float64)),
    "hessian": lambda f, x, w: torch.autograd.functional.hessian(lambda x: f(x, w).sum(), x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transformations_of_pytorch(name: str) -> None:
    x, w = tensor(3, 2, grad=False), tensor(2, seed=1, grad=False)
    found = TRANSFORMS[name](to_torch(lambda x, w: gt.sin(x * w) * x), x, w)
    expected = TRANSFORMS[name](lambda x, w: torch.sin(x * w) * x, x, w)
    for a, b in zip(flat(found), flat(expected), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_forward_mode_is_refused() -> None:
    x = tensor(2, grad=False)
    with pytest.raises(NotImplementedError, match="PyTorch's forward mode"):
        torch.func.jvp(to_torch(gt.sin), (x,), (x,))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x)
        with pytest.raises(NotImplementedError, match="PyTorch's forward mode"):
            to_torch(gt.sin)(dual)


def test_compiled_programs_call_it_between_their_parts() -> None:
    f = to_torch(gt.sin)
    g = torch.compile(lambda x: f(x * 2.0) + 1.0, backend="aot_eager")
    x = tensor(3)
    y = g(x)
    y.sum().backward()
    torch.testing.assert_close(y, torch.sin(2 * x) + 1)
    torch.testing.assert_close(x.grad, 2 * torch.cos(2 * x.detach()))


# -- refusals --------------------------------------------------------------------------------------

REFUSED: dict[str, Any] = {
    "bfloat16": lambda: torch.ones(2, dtype=torch.bfloat16),
    "float8": lambda: torch.ones(2).to(torch.float8_e4m3fn),
    "sparse": lambda: torch.eye(2).to_sparse(),
    "meta": lambda: torch.ones(2, device="meta"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_tensors_that_gradtape_lacks_are_refused(name: str) -> None:
    with pytest.raises(TypeError, match="gradtape has no tensors o"):
        to_torch(gt.sin)(REFUSED[name]())


def test_programs_without_values_are_refused() -> None:
    f, x = to_torch(gt.sin), torch.ones(2)
    with pytest.raises(NotImplementedError, match="would keep the values of this run"):
        torch.jit.trace(f, x)
    with pytest.raises(TypeError, match="gradtape needs the values of tensors"):
        torch.autograd.functional.hessian(lambda x: f(x).sum(), x, vectorize=True)

    class Net(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return f(x)

    with pytest.raises(TypeError, match="gradtape needs the values of tensors"):
        torch.export.export(Net(), (x,))


def test_trainable_variables_of_a_function_are_refused_where_they_would_lose_gradients() -> None:
    w = gt.Variable(2.0, name="scale")
    f = to_torch(lambda x: x * w)
    assert f(torch.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match=r"trainable variables \['scale'\].*gradtape.Module"):
        f(torch.ones(2, requires_grad=True))


def test_other_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="takes a function or a"):
        to_torch(3)


def test_zero_size_and_number_results() -> None:
    f = to_torch(lambda x: (gt.sum(x), 3, "text", np.float64(2.0)))
    y, *rest = f(tensor(0))
    assert y.item() == 0.0
    assert rest == [3, "text", 2.0]
