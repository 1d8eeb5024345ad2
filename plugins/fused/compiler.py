"""LLVM as the compiler of loops, with compiled code cached in files for later processes.

Python calls machine code as it calls its own C functions. It receives NumPy arrays and numbers, and
reads their memory from the ``ndarray`` structure, which takes a tenth of the time of ``ctypes``.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from platform import machine
from threading import RLock
from typing import Any

import numpy as np

from ...core.errors import BackendUnavailable

#: The environment variable with the folder of compiled loops; if it is empty, there is no cache.
CACHE = "GRADTAPE_CACHE_DIR"
#: At this number of files the folder is emptied: constants such as learning rates are in the code.
_MOST_FILES = 2000
#: The flags of ``fenv.h`` for invalid operations, division by zero and overflow.
FLAGS = {"x86_64": 1 | 4 | 8, "AMD64": 1 | 4 | 8, "aarch64": 1 | 2 | 4, "arm64": 1 | 2 | 4}
#: The name of the function in a text, and the size of an object's header in bytes.
FUNCTION, HEADER = "loop_of_arrays", object.__basicsize__
#: The offsets of ``ndarray``'s memory, rank, shape, dtype and flags. A number's value is at HEADER.
DATA, RANK, SHAPE, DTYPE, STATE = (HEADER + n for n in (0, 8, 16, 40, 48))
#: The flags of an aligned array, and of one that is C contiguous too.
ALIGNED = 0x100
ORDERED = 0x1 | ALIGNED
#: The dtypes of the arrays and numbers that loops receive.
DTYPES = {np.dtype(kind).name: np.dtype(kind) for kind in (bool, "i4", "i8", "f4", "f8")}
_OF_PYTHON = (
    "PyErr_Occurred PyEval_RestoreThread PyEval_SaveThread PyLong_AsSsize_t PyObject_Vectorcall "
    "Py_IncRef _Py_NoneStruct"
)
_FAST = 0x80  # METH_FASTCALL
#: The C library, as part of this process.
LIBRARY = ctypes.CDLL(None) if os.name != "nt" else None

_alone = RLock()
_addresses: dict[str, int] = {}


@cache
def unavailable() -> str | None:
    """Return why loops cannot be compiled here, or None if they can; LLVM is not imported."""
    if find_spec("llvmlite") is None:
        return 'loops are compiled by llvmlite, which is missing; pip install "gradtape[fused]"'
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return "loops need CPython with 64-bit objects, because they read their memory"
    if machine() not in FLAGS or not hasattr(LIBRARY, "fetestexcept"):
        return f"loops need the floating-point flags of the C library, unknown on {machine()}"
    if not _as_expected():
        return f"loops read the memory of arrays, whose layout in NumPy {np.__version__} is unknown"
    return None


def unusable() -> str | None:
    """Return why the installed LLVM cannot be used, or None if it can; it is imported."""
    try:
        llvm = import_module("llvmlite.binding")
    except Exception as error:  # of any type, for example because a library is missing
        return f"llvmlite cannot be imported ({type(error).__name__}: {error})"
    return None if hasattr(llvm, "create_pass_builder") else "it needs llvmlite 0.45 or newer"


def _as_expected() -> bool:
    """Return whether arrays and numbers have the layout in memory that loops rely on."""
    array, number = np.ones((3, 5), np.float32), np.float64(1.5)

    def read(kind: Any, thing: Any, place: int) -> Any:
        return kind.from_address(id(thing) + place).value

    word = ctypes.c_ssize_t
    return (
        read(word, array, HEADER - 8) == id(np.ndarray)
        and read(word, array, DATA) == array.ctypes.data
        and read(ctypes.c_int, array, RANK) == array.ndim
        # the strides follow the lengths
        and read(word, array, SHAPE + 8) == read(word, array, SHAPE) + 8 * array.ndim
        and read(word, array, DTYPE) == id(array.dtype)
        and read(ctypes.c_int, array, STATE) & ORDERED == ORDERED
        and not read(ctypes.c_int, array.T, STATE) & 0x1
        and read(ctypes.c_double, number, HEADER) == number
    )


class _Method(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def function_at(address: int, state: Any, owned: tuple[Any, ...]) -> Callable[..., Any]:
    """Return a function of Python for machine code that is called as ``METH_FASTCALL``.

    Parameters
    ----------
    address
        The address of the machine code.
    state
        An array, its first argument.
    owned
        What must live as long as the function.
    """
    method = _Method(b"loop", address, _FAST, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, *[ctypes.py_object] * 2]
    # its module may be any object
    function: Callable[..., Any] = new(ctypes.addressof(method), state, (method, *owned))
    return function


def address_of(text: str) -> int:
    """Return the address of the machine code of a text in this process.

    Parameters
    ----------
    text
        LLVM's intermediate representation of :data:`FUNCTION`.
    """
    with _alone:
        return _address(text)


def _address(text: str) -> int:
    llvm, target, engine = _engine()
    key = hashlib.sha256(f"{llvm.llvm_version_info}{_host()}{text}".encode()).hexdigest()[:32]
    if key in _addresses:
        return _addresses[key]
    name = f"{FUNCTION}_{key}"
    path = _path(key)
    code = None if path is None else _kept(path)
    if code is None:
        code = _machine_code(llvm, target, text.replace(FUNCTION, name))
        if path is not None:
            _keep(path, code)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _addresses[key] = address = int(engine.get_function_address(name))
    return address


def _machine_code(llvm: Any, target: Any, text: str) -> bytes:
    module = llvm.parse_assembly(text)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    # otherwise adjacent numbers may be divided together with empty lanes, and 0 / 0 sets a flag
    options.slp_vectorization = False
    passes = llvm.create_pass_builder(target, options)
    passes.getModulePassManager().run(module, passes)
    return bytes(target.emit_object(module))


@cache
def _host() -> tuple[str, str, str]:
    llvm: Any = import_module("llvmlite.binding")
    features = llvm.get_host_cpu_features().flatten()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


@cache
def _engine() -> tuple[Any, Any, Any]:
    """Return LLVM, its target machine, and the engine for machine code."""
    reason = unusable()
    if reason is not None:
        raise BackendUnavailable(f"executor 'fused': {reason}")
    llvm: Any = import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in _OF_PYTHON.split():
        llvm.add_symbol(name, ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, name)))
    llvm.add_symbol("array_type", id(np.ndarray))
    triple, cpu, features = _host()
    target = llvm.Target.from_triple(triple).create_target_machine(
        cpu, features, opt=3, codemodel="jitdefault", jit=True
    )
    return llvm, target, llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)


# -- files -----------------------------------------------------------------------------------------


def cache_folder(make: bool = False) -> tuple[Path | None, str | None]:
    """Return the folder of compiled loops, or None without a cache; and why it cannot be used.

    Parameters
    ----------
    make
        Make the folder if it does not exist.
    """
    named = os.environ.get(CACHE)
    if named == "":
        return None, None
    folder = None
    try:
        caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(named) if named else Path(caches) / "gradtape" / "loops"
        if make:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        there = next(x for x in (folder, *folder.parents) if x.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            return folder, "it is not writable"
        # the files in it are executed: other users must not be able to write to it
        state = folder.stat() if there == folder else None
    except (OSError, RuntimeError) as error:  # the home folder is missing or not writable
        return folder, str(error)
    if state is not None and (state.st_uid != os.getuid() or state.st_mode & 0o022):
        return folder, "other users may write to it"
    return folder, None


def has_kept_code() -> bool:
    """Return whether earlier processes have left compiled loops in the cache."""
    folder, problem = cache_folder()
    try:
        return folder is not None and not problem and any(folder.iterdir())
    except OSError:  # there is no folder
        return False


def _path(key: str) -> Path | None:
    """Return the file for a key in the user's own cache, if there is a cache."""
    folder, problem = cache_folder(make=True)
    return None if folder is None or problem else folder / f"{key}.o"


def _kept(path: Path) -> bytes | None:
    """Return the machine code in a file, unless it is damaged."""
    try:
        kept = path.read_bytes()
    except OSError:
        return None
    digest, code = kept[:32], kept[32:]
    return code if hashlib.sha256(code).digest() == digest else None


def _keep(path: Path, code: bytes) -> None:
    try:
        if len(os.listdir(path.parent)) > _MOST_FILES:
            for old in path.parent.glob("*.o"):
                old.unlink(missing_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(file.name, path)
    except OSError:  # such as a full disk: the next process compiles it again
        pass
