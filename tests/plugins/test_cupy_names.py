"""Kernels use of CuPy what CuPy has; what is known of CuPy is what CuPy says."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cupy_rules
import numpy as np
import pretend_gpu
import pytest

import gradtape
from gradtape.plugins.cupy.names import Namespace

ROOT = Path(gradtape.__file__).parent
FILES = [
    path
    for room in ("plugins/ops", "plugins/cupy", "layers")
    for path in (ROOT / room).rglob("*.py")
]


# -- what kernels write --------------------------------------------------------------------------


def dotted(node: ast.expr) -> str | None:
    """Return ``"linalg.svd"`` of ``xp.linalg.svd``; None of what is no name of a library."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in ("xp", "special") and parts:
        prefix = ["scipy", "special"] if node.id == "special" else []
        return ".".join([*prefix, *reversed(parts)])
    return None


def asked_for(tree: ast.AST) -> set[str]:
    """Return the names that a module asks for before it uses them: ``hasattr(xp, "spacing")``."""
    return {
        node.args[1].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("hasattr", "getattr", "standard")
        and isinstance(node.args[1], ast.Constant)
    }


def uses() -> Iterator[tuple[str, str, ast.Call | None]]:
    """Yield where a name of CuPy is used, the name, and the call if it is one."""
    for path in FILES:
        tree = ast.parse(path.read_text())
        asked = asked_for(tree)
        calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
        inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            name = dotted(node) if isinstance(node, ast.Attribute) else None
            if name is None or id(node) in inner or name.rpartition(".")[2] in asked:
                continue
            yield f"{path.relative_to(ROOT)}:{node.lineno}", name, calls.get(id(node))


@pytest.fixture
def names() -> Iterator[Any]:
    with pretend_gpu.as_cupy() as library:
        yield Namespace(library.module)


def own(names: Any, name: str) -> Any:
    """Return the backend's own function of a name, if it has one in place of CuPy's."""
    room, _, attribute = name.rpartition(".")
    holder = type(getattr(names, room)) if room in ("linalg", "add") else type(names)
    return vars(holder).get(attribute) if not room or room in ("linalg", "add") else None


def test_kernels_use_names_arguments_and_keywords_that_cupy_has(names: Any) -> None:
    wrong = []
    for where, name, call in uses():
        if name in ("__name__", "dtype.kind", "fft", "linalg"):
            continue
        mine = own(names, name)
        if mine is None and name not in cupy_rules.NAMES and name.partition(".")[0] != "cuda":
            base = name.rpartition(".")[0]
            if base not in cupy_rules.NAMES:  # an attribute of a function's is one of NumPy's
                wrong.append(f"{where}: no {name}")
            continue
        if call is None or any(isinstance(x, ast.Starred) for x in call.args):
            continue
        if mine is None and not cupy_rules.NAMES.get(name):
            continue
        signature = inspect.signature(mine) if mine else cupy_rules.signature(name)
        try:
            signature.bind_partial(
                *([None] * bool(mine)),
                *call.args,
                **{k.arg: k.value for k in call.keywords if k.arg},
            )
        except TypeError as error:
            wrong.append(f"{where}: {name}{signature}: {error}")
    assert not wrong, "\n".join(wrong)


def test_some_uses_are_found() -> None:
    found = {name for _, name, _ in uses()}
    assert {"linalg.svd", "fft.irfft", "reshape", "take_along_axis"} <= found


def test_kernels_that_are_names_are_names_of_cupy(names: Any) -> None:
    for op in gradtape.registry().ops.values():
        if isinstance(op.kernel, str):
            assert own(names, op.kernel) or op.kernel in cupy_rules.NAMES, op.name


# -- what the pretend library refuses --------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda cp, x: cp.spacing(x), AttributeError),
        (lambda cp, x: cp.linalg.svdvals(x), AttributeError),
        (lambda cp, x: x.newbyteorder(), AttributeError),
        (lambda cp, x: cp.argsort(x, stable=True), TypeError),
        (lambda cp, x: cp.count_nonzero(x, keepdims=True), TypeError),
        (lambda cp, x: cp.add(x, x, where=True), TypeError),
        (lambda cp, x: cp.add(x), TypeError),
        (lambda cp, x: x.sum(where=True), TypeError),
        (lambda cp, x: cp.argsort(x, kind="mergesort"), ValueError),
        (lambda cp, x: cp.logical_and(x + 1j, x), TypeError),
        (lambda cp, x: cp.linalg.inv(x.astype("float16")), TypeError),
        (lambda cp, x: cp.where(True, x, x), AttributeError),
        (lambda cp, x: cp.sum(3.0), AttributeError),
        (lambda cp, x: cp.linalg.solve(cp.stack([x, x]), x), ValueError),
        (lambda cp, x: np.asarray(x), TypeError),
        (lambda cp, x: x + np.ones((2, 2)), TypeError),
        (lambda cp, x: np.ones((2, 2)) * x, TypeError),
        (lambda cp, x: cp.add.at(x.astype(complex), 0, 1.0), TypeError),
        (lambda cp, x: x.astype(int).__iadd__(x), TypeError),
    ],
)
def test_what_cupy_lacks_the_pretend_library_lacks(call: Any, error: Any) -> None:
    library = pretend_gpu.make("elsewhere")
    with pytest.raises(error):
        call(library, library.array(np.eye(2)))


def test_arrays_of_another_device_than_the_current_one_are_refused() -> None:
    library = pretend_gpu.make("elsewhere")
    with library.cuda.Device(1):
        x = library.array([1.0])
    with pytest.raises(ValueError, match="must be same as the current device"):
        x + x


def test_numpys_functions_and_scalars_reach_its_own() -> None:
    library = pretend_gpu.make("elsewhere")
    x = library.array(np.array([1.0, 4.0], np.float32))
    assert type(np.sqrt(x)) is type(np.float32(2) * x) is library.ndarray
    assert (2.0 * x).dtype == np.float32
    assert (np.float64(2.0) * x).dtype == np.float64
    assert library.sin(library.array(np.array([1], np.int8))).dtype == np.float16


# -- the table, where CuPy is ----------------------------------------------------------------------


@pytest.fixture
def cupy() -> Any:
    return pytest.importorskip("cupy", reason="CuPy is not installed")


def test_the_table_is_of_this_cupy(cupy: Any) -> None:
    import make_cupy_table

    table = make_cupy_table.table()
    if table["version"] != cupy_rules.TABLE["version"]:
        pytest.skip(f"the table is of {cupy_rules.TABLE['version']}, CuPy is {table['version']}")
    assert make_cupy_table.text() == make_cupy_table.PATH.read_text()


def test_what_the_backend_uses_beside_the_namespace_is_there(cupy: Any) -> None:
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)
    for name in ("getDeviceCount", "getDevice", "memGetInfo"):
        assert callable(getattr(cupy.cuda.runtime, name))
    for name in ("used_bytes", "total_bytes", "free_all_blocks"):
        assert callable(getattr(cupy.get_default_memory_pool(), name))


def test_additions_at_places_are_for_the_dtypes_that_are_known(cupy: Any) -> None:
    class Owner:
        pass

    def unreal(count: int, dtype: str) -> Any:
        """Return an array on memory that nobody has: what is refused is refused before."""
        memory = cupy.cuda.UnownedMemory(1 << 20, 512, Owner(), 0)
        return cupy.ndarray((count,), dtype, memptr=cupy.cuda.MemoryPointer(memory, 0))

    if cupy.is_available():
        pytest.skip("on a GPU the additions would be done")
    for name, known in cupy_rules.ATOMIC.items():
        for dtype in "?bBhHilqILQefdFD":
            with pytest.raises(Exception) as caught:  # noqa: PT011 - no driver, or no such dtype
                getattr(cupy, name).at(unreal(8, dtype), unreal(4, "int64"), unreal(4, dtype))
            assert isinstance(caught.value, TypeError) == (dtype not in known), (name, dtype)
