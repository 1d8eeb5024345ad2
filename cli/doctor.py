"""``gradtape doctor``: what computes here, on what, and what could be better."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
import textwrap
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..core.errors import BackendUnavailable
from ..core.extend import registry
from ..plugins.numpy.threads import NEEDED, pools
from ..plugins.planned.compiled.compiler import unavailable, unusable
from .cores import cores, quota

__all__ = ["diagnosis", "doctor_json", "doctor_text", "filled"]

PACKAGES = ("gradtape", "numpy", "scipy", "llvmlite", "jax", "cupy", "threadpoolctl")
VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
    "CUPY_CACHE_DIR",
    "GRADTAPE_EXECUTOR",
    "GRADTAPE_DISABLE_PLUGINS",
)
#: From this ratio on threads are said to cost something.
COSTLY = 1.3
#: Times a product as small networks have it, and prints the median and the worst microseconds.
PRODUCT = """
import time, numpy as np
a, b = np.ones((128, 784), "f"), np.ones((784, 256), "f")
for _ in range(5): a @ b
times, end = [], time.perf_counter() + 0.4
while time.perf_counter() < end:
    start = time.perf_counter(); a @ b; times.append(time.perf_counter() - start)
times.sort()
print(times[len(times) // 2] * 1e6, times[-1 - len(times) // 100] * 1e6)
"""


def diagnosis(measure: bool = True) -> dict[str, Any]:
    """Return what computes here, as a tree of JSON values.

    Parameters
    ----------
    measure
        Whether a matrix product is timed with one thread and with as many as BLAS starts, which
        takes about two seconds.
    """
    found: dict[str, Any] = {
        "python": f"{platform.python_version()}, {platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in PACKAGES},
        "cores": _cores(),
        "environment": {name: os.environ[name] for name in VARIABLES if name in os.environ},
        "blas": _blas(),
        "backends": _backends(),
        "devices": _devices(),
        "executors": _executors(),
    }
    if measure:
        found["product"] = _product()
    found["advice"] = _advice(found)
    return found


def doctor_json(measure: bool = True) -> str:
    """Return :func:`diagnosis` as JSON text."""
    return json.dumps(diagnosis(measure), indent=2)


def doctor_text(measure: bool = True) -> str:
    """Return :func:`diagnosis` in words."""
    found = diagnosis(measure)
    cores, product = found["cores"], found.get("product")
    packages = [f"{name} {x or '(not installed)'}" for name, x in found["packages"].items()]
    lines = [
        ("python", found["python"]),
        ("packages", ", ".join(packages)),
        ("cores", _cores_told(cores)),
        ("environment", ", ".join(f"{k}={x}" for k, x in found["environment"].items()) or "-"),
        *(("blas", _pool_told(x)) for x in found["blas"]),
    ]
    if product:
        lines.append(("threads", _product_told(product)))
    for what in ("backends", "executors"):
        lines += [(what, f"{name}: {x or 'ready'}") for name, x in found[what].items()]
    for name, told in found["devices"].items():
        lines += [(name, line) for line in told["lines"]]
    words = []
    last = None
    for head, text in lines:
        label = "" if head == last else head
        words.append(filled(f"{label:13}{text}", " " * 13))
        last = head
    advice = [filled(f"* {x}", "  ") for x in found["advice"]]
    return "\n".join([*words, "", *(advice or ["Nothing to improve was found."])])


# -- what is there ---------------------------------------------------------------------------------


def _version(name: str) -> str | None:
    if name != "gradtape" and importlib.util.find_spec(name) is None:
        return None
    try:
        return version(name)
    except PackageNotFoundError:  # cupy has a distribution for each CUDA
        return "?"


def _cores() -> dict[str, Any]:
    """Return the cores of the machine, those that this process may use, and what others use."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {"machine": os.cpu_count(), "allowed": len(cores()), "quota": quota(), "load": load}


def _blas() -> list[dict[str, Any]]:
    """Return the pools of threads; where nobody can ask them, what NumPy was built with."""
    try:
        return [
            {key: x.get(key) for key in ("internal_api", "version", "num_threads", "user_api")}
            for x in pools()
        ]
    except BackendUnavailable:
        import numpy as np

        built: Any = np.show_config(mode="dicts")
        blas = built.get("Build Dependencies", {}).get("blas", {})
        name = str(blas.get("name", "?"))
        return [{"internal_api": name, "version": blas.get("version"), "num_threads": None}]


def _backends() -> dict[str, str | None]:
    return {name: x.unavailable() for name, x in registry(strict=False).backends.items()}


def _devices() -> dict[str, Any]:
    """Return what backends tell of what they run on, those that have something to tell."""
    found = {name: x.diagnosis() for name, x in registry(strict=False).backends.items()}
    return {name: told for name, told in found.items() if told}


def _executors() -> dict[str, str | None]:
    reasons = {"fused": unavailable() or unusable()}
    return {name: reasons.get(name) for name in registry(strict=False).executors}


# -- what threads cost -----------------------------------------------------------------------------


def _product() -> dict[str, Any] | None:
    """Time a product in processes of their own: with one thread, and with BLAS's own number."""
    found = {}
    for name, settings in (("one", dict.fromkeys(VARIABLES[:3], "1")), ("all", {})):
        try:
            run = subprocess.run(
                [sys.executable, "-c", PRODUCT],
                env={**os.environ, **settings},
                capture_output=True,
                check=True,
                text=True,
                timeout=60,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        median, worst = map(float, run.stdout.split())
        found[name] = {"median_us": median, "worst_us": worst}
    return found


def _ratios(product: dict[str, Any]) -> tuple[float, float]:
    one, every = product["one"], product["all"]
    return every["median_us"] / one["median_us"], every["worst_us"] / one["median_us"]


def _advice(found: dict[str, Any]) -> list[str]:
    """Return what to do about what was found."""
    advice = []
    cores = found["cores"]
    usable = min(x for x in (cores["allowed"], cores["quota"]) if x is not None)
    threads = max((x["num_threads"] or 0 for x in found["blas"]), default=0)
    bound = (
        "Set OMP_NUM_THREADS=1 before Python starts, or call gt.limit_threads(1) "
        "(several processes: as many threads for all of them together as there are cores)."
    )
    if threads > usable:
        advice.append(
            f"BLAS starts {threads} threads where this process has {usable:g} cores: they wait "
            f"for each other. {bound}"
        )
    elif found.get("product"):
        median, worst = _ratios(found["product"])
        if median > COSTLY or worst > 10 * COSTLY:
            advice.append(
                f"With all threads a product takes {median:.1f} times as long as with one (the "
                f"slowest of a hundred {worst:.0f} times): other processes use the cores, and "
                f"threads that wait for them spin. {bound}"
            )
    if any(x["num_threads"] is None for x in found["blas"]):
        advice.append(f"How many threads BLAS uses cannot be told: {NEEDED}.")
    named = found.get("environment", {}).get("GRADTAPE_EXECUTOR")
    if named and named not in found["executors"]:
        advice.append(
            f"GRADTAPE_EXECUTOR names {named!r}, which is no executor: no compiled function runs."
        )
    for told in found.get("devices", {}).values():
        advice += told["advice"]
    if found["executors"].get("fused"):
        advice.append(f"Compiled functions would run faster: {found['executors']['fused']}.")
    return advice


# -- in words --------------------------------------------------------------------------------------


def filled(text: str, indent: str) -> str:
    """Return text in lines; a command in it can be copied, names in it stay whole."""
    wrapper = textwrap.TextWrapper(
        100, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    return wrapper.fill(text)


def _cores_told(cores: dict[str, Any]) -> str:
    told = f"{cores['machine']}, {cores['allowed']} of them for this process"
    if cores["quota"] is not None:
        told += f", time for {cores['quota']:g}"
    return told if cores["load"] is None else f"{told}; load {cores['load']:.1f}"


def _pool_told(pool: dict[str, Any]) -> str:
    threads = "?" if pool["num_threads"] is None else pool["num_threads"]
    return f"{pool['internal_api']} {pool['version'] or ''}, threads: {threads}"


def _product_told(product: dict[str, Any]) -> str:
    one, every = product["one"], product["all"]
    median, _ = _ratios(product)
    return (
        f"a product of 128 by 784 and 784 by 256 numbers takes {one['median_us']:,.0f} µs with "
        "one thread, "
        f"{every['median_us']:,.0f} with all ({median:.2f} times; 1 % take more than "
        f"{every['worst_us']:,.0f})"
    )
