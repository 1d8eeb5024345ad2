"""Kernels of CUDA C on the processor, and what of CuPy launches them, for the pretend library.

A kernel's source is compiled by ``g++`` behind a few lines that stand for CUDA, and runs one thread
after another. Streams are there by name, and a graph runs again what was launched while it was
captured, which is not run meanwhile; as on a GPU, the host can read nothing then.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import shutil
import subprocess
import tempfile
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gradtape.plugins.cupy.compiled.formulas import HALF

__all__ = ["MISSING", "add_to", "build"]

#: Why no kernel can run here, if none can.
MISSING = None if shutil.which("g++") else "g++ is not here, by which kernels run on the processor"

_CUDA = """\
#include <math.h>
#include <string.h>
struct three { unsigned int x, y, z; };
static thread_local three blockIdx, threadIdx, blockDim, gridDim;
#define __global__
#define __device__
template <class To, class From> static To bits(From x) { To y; memcpy(&y, &x, sizeof y); return y; }
static float __int_as_float(int x) { return bits<float>(x); }
static int __float_as_int(float x) { return bits<int>(x); }
static double __longlong_as_double(long long x) { return bits<double>(x); }
"""
_HALF = """\
static float from_half(unsigned short x) { return (float)bits<_Float16>(x); }
static unsigned short to_half(float x) { return bits<unsigned short>((_Float16)x); }
"""
_LAUNCH = """\
extern "C" void launch_{name}(void** m, unsigned int blocks, unsigned int threads) {{
    gridDim = {{blocks, 1, 1}}; blockDim = {{threads, 1, 1}};
    for (unsigned int b = 0; b < blocks; b++)
        for (unsigned int t = 0; t < threads; t++) {{
            blockIdx = {{b, 0, 0}}; threadIdx = {{t, 0, 0}};
            {name}({arguments});
        }}
}}
"""
_OPTIONS = (
    "-O0 -std=c++17 -ffp-contract=off -fwrapv -fno-strict-aliasing -shared -fPIC -x c++".split()
)


def build(sources: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Compile kernels, given as names and sources; return what launches them, by name."""
    text = [_CUDA]
    for number, (name, source) in enumerate(sources):
        signature = re.search(rf"void {name}\((.*?)\)", source)
        assert signature is not None, source
        kinds = [part.rsplit("* ", 1)[0] for part in signature.group(1).split(", ")]
        given = ", ".join(f"({kind}*)m[{i}]" for i, kind in enumerate(kinds))
        body = source.replace(HALF, _HALF) + _LAUNCH.format(name=name, arguments=given)
        text.append(f"namespace n{number} {{\n{body}}}\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernels.so")
        command = ["g++", *_OPTIONS, "-o", str(path), "-"]
        subprocess.run(command, input="".join(text), text=True, check=True, timeout=300)
        library = ctypes.CDLL(str(path))
    return {name: getattr(library, f"launch_{name}") for name, _ in sources}


_known: dict[str, Any] = {}
_waiting: dict[str, str] = {}


def _built(name: str, source: str) -> Any:
    """Return what launches a kernel, which is compiled together with all that wait for it."""
    if name not in _known:
        waiting = {**_waiting, name: source}
        _known.update(build(list(waiting.items())))
        _waiting.clear()
    return _known[name]


class _At:
    """Memory at an address, which does not keep it."""

    def __init__(self, x: np.ndarray) -> None:
        self.__array_interface__ = {
            "data": (x.ctypes.data, False), "shape": x.shape, "strides": x.strides,
            "typestr": x.dtype.str, "version": 3,
        }  # fmt: skip


def _in_columns(given: tuple[Any, int, int], shape: tuple[int, int], count: int) -> Any:
    """Return the matrices that begin at an array's first element."""
    array, column, apart = given
    size, data = array.data.itemsize, np.asarray(_At(array.data))
    strides = (apart * size, size, column * size)
    return np.lib.stride_tricks.as_strided(data, (count, *shape), strides)


class _Here(threading.local):
    """A thread's current stream."""

    def __init__(self) -> None:
        self.streams: list[Any] = []


def add_to(module: Any) -> types.SimpleNamespace:
    """Add kernels, streams and graphs to a pretend CuPy; return what happened, as it is counted."""
    here = _Here()
    seen = types.SimpleNamespace(
        launches=0,
        outside=0,
        graphs=0,
        captures=0,
        products=0,
        refuse=None,
        dry=False,
        cublas=None,
        stop=None,
    )

    class Stream:
        """As CuPy's; all work is done at once."""

        def __init__(
            self,
            null: bool = False,
            non_blocking: bool = False,
            ptds: bool = False,
            priority: Any = None,
        ) -> None:
            self.name = "copies" if non_blocking else "main"
            self.ptr = 0 if null else 2 if ptds else id(self)
            self.recorded: list[Callable[[], None]] | None = None

        def __enter__(self) -> Stream:
            here.streams.append(self)
            return self

        def __exit__(self, *exception: object) -> None:
            here.streams.pop()

        def synchronize(self) -> None:
            unrecorded("synchronize")

        def wait_event(self, event: Any) -> None:
            unrecorded("wait_event")

        def is_capturing(self) -> bool:
            return self.recorded is not None

        def begin_capture(self, mode: Any = None) -> None:
            self.recorded = []

        def end_capture(self) -> Graph:
            recorded, self.recorded = self.recorded, None
            assert recorded is not None
            if seen.refuse:
                raise RuntimeError(seen.refuse)
            seen.captures += 1
            return Graph(recorded)

    class Graph:
        """What was recorded, to be done again."""

        def __init__(self, recorded: list[Callable[[], None]]) -> None:
            self.recorded = recorded

        def launch(self, stream: Any = None) -> None:
            seen.graphs += 1
            stop, when = seen.stop or (None, "")
            if when == "before":
                raise stop
            for work in self.recorded:
                work()
            if when == "after":
                raise stop

    class RawKernel:
        """A kernel, which runs on the processor."""

        def __init__(
            self, code: str, name: str, options: tuple[str, ...] = (), backend: str = "nvrtc",
            translate_cucomplex: bool = False, *, enable_cooperative_groups: bool = False,
            jitify: Any = None,
        ) -> None:  # fmt: skip
            self.code, self.name, self.options = code, name, options

        def compile(self, log_stream: Any = None) -> None:
            if self.name not in _known:
                _waiting[self.name] = self.code

        def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0) -> None:
            assert all(type(x) is module.ndarray for x in args)
            assert all(x.data.flags.c_contiguous for x in args)
            # as on a GPU, a recorded launch has addresses, and keeps no array
            pointers = (ctypes.c_void_p * len(args))(*[x.data.ctypes.data for x in args])

            def work() -> None:
                seen.launches += 1
                with np.errstate(all="ignore"):
                    _built(self.name, self.code)(pointers, grid[0], block[0])

            if not seen.dry:
                do(work)

    null = Stream(null=True)

    def current() -> Stream:
        return here.streams[-1] if here.streams else null

    def do(work: Callable[[], None]) -> None:
        recorded = current().recorded
        if recorded is None:
            seen.outside += 1
            work()
        else:
            recorded.append(work)

    def assign(array: Any, index: Any, value: Any) -> None:
        if current().is_capturing():
            array = type(array)(np.asarray(_At(array.data)), array.device.id)
            if isinstance(value, module.ndarray):
                value = type(value)(np.asarray(_At(value.data)), value.device.id)
        do(lambda: setitem(array, index, value))

    def unrecorded(what: str) -> None:
        if current().is_capturing():
            raise RuntimeError(f"cudaErrorStreamCaptureUnsupported: {what}")

    plain, setitem = module.matmul, module.ndarray.__setitem__

    def matmul(x1: Any, x2: Any, /, out: Any = None, **keywords: Any) -> Any:
        if current().is_capturing():
            raise NotImplementedError("calling cuBLAS API during stream capture is unsupported")
        return plain(x1, x2, **keywords) if out is None else plain(x1, x2, out=out, **keywords)

    def multiply(char: str, turned: Any, sizes: Any, count: int, x: Any, y: Any, out: Any) -> None:
        """Multiply matrices that lie column by column, as cuBLAS does."""
        (m, n, k), seen.products = sizes, seen.products + 1
        first = _in_columns(x, (k, m) if turned[0] else (m, k), count)
        second = _in_columns(y, (n, k) if turned[1] else (k, n), count)
        result = _in_columns(out, (m, n), count)

        def work() -> None:
            one, two = (a.mT if t else a for a, t in zip((first, second), turned, strict=True))
            wide = np.matmul(one, two, dtype="float32" if char == "e" else char)
            result[...] = wide

        if not seen.dry:  # of kernels that have not run
            do(work)

    class Handle:
        """As that of cuBLAS, for one thread; it works on the stream that it is bound to."""

        def __init__(self, xp: Any) -> None:
            if seen.cublas is not None:
                raise seen.cublas
            self.stream: Any = None

        def bind(self, stream: Any, scratch: Any) -> None:
            self.stream = stream

        def multiply(self, *given: Any) -> None:
            assert self.stream is current(), "cuBLAS is bound to another stream than the current"
            multiply(*given)

        def scratch(self, stream: Any) -> None:
            return None

    def waiting(name: str) -> None:
        function = getattr(module.ndarray, name)

        def read(self: Any) -> Any:
            unrecorded(name)
            return function(self)

        setattr(module.ndarray, name, read)

    @contextlib.contextmanager
    def using_allocator(allocator: Any = None) -> Iterator[None]:
        yield

    for name in ("__bool__", "__float__", "__int__"):
        waiting(name)
    module.ndarray.__setitem__ = assign
    module.matmul, module.RawKernel = matmul, RawKernel
    vars(module.cuda).update(
        Stream=Stream,
        get_current_stream=lambda device_id=-1: current(),
        MemoryPool=lambda allocator=None: types.SimpleNamespace(
            malloc=lambda size: None, total_bytes=lambda: 0
        ),
        using_allocator=using_allocator,
    )
    seen.Handle = Handle
    return seen
