"""The report of ``gradtape doctor`` on GPUs: what is installed, what is wrong, and what to do."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

#: Libraries of the CUDA toolkit that kernels call, by CuPy's attribute for their version.
_TOOLKIT = {
    "cuBLAS": "cublas_version",
    "cuFFT": "cufft_version",
    "cuRAND": "curand_version",
    "cuSOLVER": "cusolver_version",
    "cuSPARSE": "cusparse_version",
    "NVRTC": "nvrtc_version",
}
#: Libraries that make some functions faster, and the distribution of each, by CUDA's number.
_OPTIONAL = {
    "NCCL": ("nccl_runtime_version", "nvidia-nccl-cu{}"),
    "cuTENSOR": ("cutensor_version", "cutensor-cu{}"),
}
#: The extra of gradtape for each CUDA.
_EXTRAS = {12: "cupy", 13: "cupy-cuda13"}
_VISIBLE, _CACHE = "CUDA_VISIBLE_DEVICES", "CUPY_CACHE_DIR"
#: The lowest compute capability that CUDA 13 supports.
_LEAST_OF_13 = (7, 5)


def diagnosis() -> dict[str, Any]:
    """Return the facts, a report in lines, and advice; empty without CuPy and a driver."""
    found = facts()
    if not found["wheels"] and found["driver"] is None:
        return {}
    return {**found, "lines": _lines(found), "advice": advice(found)}


def facts() -> dict[str, Any]:
    """Return what is installed, as JSON values; None where it cannot be found out."""
    found: dict[str, Any] = {
        "wheels": _wheels(),
        "driver": _driver(),
        "driver_release": _driver_release(),
        "visible": os.environ.get(_VISIBLE),
        "cache": _cache(),
        "problem": None,
        "runtime": None,
        "devices": [],
        "libraries": {},
    }
    if not found["wheels"]:
        return found
    try:
        cupy = import_module("cupy")
        found["version"] = str(cupy.__version__)
        found["runtime"] = int(cupy.cuda.runtime.runtimeGetVersion())
        found["driver"] = int(cupy.cuda.runtime.driverGetVersion()) or None
        found["devices"] = [_device(cupy, i) for i in range(cupy.cuda.runtime.getDeviceCount())]
        found["libraries"] = _libraries()
        if found["devices"]:
            _try(cupy)
    except Exception as error:  # CuPy's own error type is known only if CuPy is installed
        found["problem"] = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return found


# -- what is installed -----------------------------------------------------------------------------


def _wheels() -> dict[str, str]:
    """Return the distributions that provide a module ``cupy``, with their versions."""
    found = {}
    from importlib.metadata import distributions

    for distribution in distributions():
        with suppress(ValueError, KeyError):  # another one's metadata cannot be read
            name = str(distribution.metadata["Name"]).lower().replace("_", "-")
            if name in ("cupy", "amd-cupy") or name.startswith(("cupy-cuda", "cupy-rocm")):
                found[name] = distribution.version
    return dict(sorted(found.items()))


def _driver() -> int | None:
    """Return the CUDA version of the driver, as 12040 for 12.4; None without a driver."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    version = ctypes.c_int(0)
    try:
        library = ctypes.CDLL(name)
        library.cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return None
    return version.value or None


def _driver_release(path: str = "/proc/driver/nvidia/version") -> str | None:
    """Return the driver's own version number, where Linux shows it."""
    try:
        words = Path(path).read_text().splitlines()[0].split()
    except (OSError, IndexError):
        return None
    return next((x for x in words if x[:1].isdigit() and "." in x), None)


def _cache() -> dict[str, Any]:
    """Return the folder of CuPy's compiled kernels, and whether it is writable."""
    path = Path(os.environ.get(_CACHE) or Path.home() / ".cupy" / "kernel_cache")
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    return {"path": str(path), "writable": there.is_dir() and os.access(there, os.W_OK | os.X_OK)}


def _device(cupy: Any, number: int) -> dict[str, Any]:
    known = cupy.cuda.runtime.getDeviceProperties(number)
    name = known["name"]
    with cupy.cuda.Device(number):
        free, total = cupy.cuda.runtime.memGetInfo()
    return {
        "name": name.decode() if isinstance(name, bytes) else str(name),
        "capability": [int(known["major"]), int(known["minor"])],
        "memory": int(total),
        "free": int(free),
    }


def _libraries() -> dict[str, str | None]:
    """Return the versions of libraries; None for those that cannot be loaded."""
    known = import_module("cupyx").get_runtime_info()
    names = {**_TOOLKIT, **{name: x for name, (x, _) in _OPTIONAL.items()}}
    found = {}
    for name, attribute in names.items():
        version = getattr(known, attribute, None)
        # if a library fails, CuPy has the error instead of the version
        failed = version is None or (isinstance(version, str) and "(" in version)
        found[name] = None if failed and version != "(available)" else str(version)
    return found


def _try(cupy: Any) -> None:
    """Compile a kernel and multiply two matrices; raise CuPy's error if that fails."""
    ones = cupy.ones((8, 8), dtype="float32")
    total = float(cupy.sum(cupy.matmul(ones + 1, ones)))
    if total != 1024.0:
        raise ArithmeticError(f"a sum on the GPU is {total} instead of 1024")


# -- what to do ------------------------------------------------------------------------------------


def advice(found: dict[str, Any]) -> list[str]:
    """Return what to do about the problems that :func:`facts` found, in order.

    Parameters
    ----------
    found
        The result of :func:`facts`.
    """
    for asked in (_about_wheels, _about_the_driver, _about_visibility):
        told = asked(found)
        if told:
            return [told]  # its consequences are not reported
    several = [_about_capability(found), _about_libraries(found), _about_the_rest(found)]
    return [*filter(None, several), *_about_the_cache(found), *_about_options(found)]


def _cuda_of(found: dict[str, Any]) -> int:
    """Return the CUDA version whose CuPy fits the driver."""
    return 13 if (found["driver"] or 0) >= 13000 else 12


def _install(cuda: int) -> str:
    return f'pip install "gradtape[{_EXTRAS[cuda]}]"'


def _about_wheels(found: dict[str, Any]) -> str | None:
    wheels = list(found["wheels"])
    cuda = _cuda_of(found)
    if not wheels:
        return (
            f"An NVIDIA driver for CUDA {_number(found['driver'])} is installed, but CuPy is not: "
            f"{_install(cuda)}."
        )
    if len(wheels) == 1:
        return None
    told = [f"{name} {version}" for name, version in found["wheels"].items()]
    fits = f"cupy-cuda{cuda}x"
    keep = f"{fits} fits this driver" if found["driver"] else "you can keep one"
    return (
        f"Several CuPy are installed, {' and '.join(told)}, and each overwrote files of the "
        f"others ({keep}). Remove all of them, then install one: pip uninstall -y "
        f"{' '.join(wheels)}; {_install(cuda)}."
    )


def _about_the_driver(found: dict[str, Any]) -> str | None:
    driver, runtime = found["driver"], found["runtime"]
    if runtime is None:  # CuPy itself could not be imported
        return None
    if driver is None:
        return (
            "CuPy is installed, but no NVIDIA driver: install the driver, until 'nvidia-smi' lists "
            "the GPU; in a container, start it with the GPU (docker run --gpus all)."
        )
    if driver // 1000 < runtime // 1000:
        (wheel,) = found["wheels"]
        return (
            f"The driver is too old for {wheel}: it supports CUDA {_number(driver)}, and the wheel "
            f"is built for CUDA {_number(runtime)}. Install a newer driver, or the CuPy that fits: "
            f"pip uninstall -y {wheel}; {_install(_cuda_of(found))}."
        )
    return None


def _about_visibility(found: dict[str, Any]) -> str | None:
    if found["devices"] or found["runtime"] is None:
        return None
    if found["visible"] is not None:
        return (
            f"{_VISIBLE}={found['visible']!r} hides every GPU: unset it, or set it to the numbers "
            "that 'nvidia-smi' lists, as in 0,1."
        )
    if found["problem"] is None or "NoDevice" in found["problem"]:
        return "No GPU was found, although a driver is installed: check what 'nvidia-smi' lists."
    return None


def _about_capability(found: dict[str, Any]) -> str | None:
    old = [
        x["name"]
        for x in found["devices"]
        if found["runtime"] >= 13000 and tuple(x["capability"]) < _LEAST_OF_13
    ]
    if not old:
        return None
    return (
        f"CUDA 13 does not support {', '.join(old)} (compute capability below 7.5): "
        f"pip uninstall -y {' '.join(found['wheels'])}; {_install(12)}."
    )


def _toolkit(found: dict[str, Any]) -> str:
    """Return the command that installs the parts of CUDA that a CuPy wheel needs."""
    (wheel,) = found["wheels"]
    return f'pip install "{wheel}[ctk]"'


def _about_libraries(found: dict[str, Any]) -> str | None:
    missing = [x for x in _TOOLKIT if x in found["libraries"] and not found["libraries"][x]]
    if not missing:
        return None
    return f"CuPy cannot load {', '.join(missing)}: {_toolkit(found)}."


def _about_the_rest(found: dict[str, Any]) -> str | None:
    if found["problem"] is None:
        return None
    if found["runtime"] is None:
        return f"CuPy cannot be imported ({found['problem']}): {_toolkit(found)}, or reinstall it."
    return f"A first computation on the GPU failed ({found['problem']}): {_toolkit(found)}."


def _about_the_cache(found: dict[str, Any]) -> list[str]:
    cache = found["cache"]
    if cache["writable"]:
        return []
    return [
        f"CuPy cannot write its cache of compiled kernels, {cache['path']}, so every process "
        f"compiles them again: set {_CACHE} to a writable folder."
    ]


def _about_options(found: dict[str, Any]) -> list[str]:
    """Return what is missing for several GPUs, which alone need these libraries."""
    libraries, devices = found["libraries"], found["devices"]
    if len(devices) < 2 or libraries.get("NCCL", "?"):
        return []
    name = _OPTIONAL["NCCL"][1].format(found["runtime"] // 1000)
    return [f"NCCL, which several GPUs use to communicate, is missing: pip install {name}."]


# -- as text ---------------------------------------------------------------------------------------


def _number(version: int | None) -> str:
    return "?" if version is None else f"{version // 1000}.{version % 1000 // 10}"


def _lines(found: dict[str, Any]) -> list[str]:
    wheels = ", ".join(f"{name} {version}" for name, version in found["wheels"].items())
    driver = "none"
    if found["driver"] is not None:
        release = found["driver_release"]
        driver = f"{release + ', ' if release else ''}for CUDA {_number(found['driver'])}"
    lines = [f"driver: {driver}", f"CuPy: {wheels or 'not installed'}"]
    if found["runtime"] is not None:
        lines[-1] += f", built for CUDA {_number(found['runtime'])}"
    for i, x in enumerate(found["devices"]):
        capability = ".".join(map(str, x["capability"]))
        lines.append(
            f"cupy:{i}: {x['name']}, compute capability {capability}, "
            f"{x['memory'] / 2**30:.1f} GiB of memory, {x['free'] / 2**30:.1f} free"
        )
    if found["libraries"]:
        told = [f"{name} {x or '(missing)'}" for name, x in found["libraries"].items()]
        lines.append(f"libraries: {', '.join(told)}")
    if found["wheels"]:
        writable = "" if found["cache"]["writable"] else " (cannot be written)"
        lines.append(f"compiled kernels: {found['cache']['path']}{writable}")
    if found["visible"] is not None:
        lines.append(f"{_VISIBLE}={found['visible']!r}")
    return lines
