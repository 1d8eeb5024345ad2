"""``gradtape doctor``: what computes here, on what, and what could be better."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
import textwrap
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..core.errors import BackendUnavailable
from ..plugins.numpy.threads import NEEDED, pools
from ..plugins.planned.compiled.compiler import CACHE, cache_folder, unavailable, unusable
from .cores import cores, quota
from .plugins import quiet_registry

__all__ = ["diagnosis", "doctor_json", "doctor_text", "filled", "show_versions"]

#: Distributions that matter to what computes here, by the module that each brings.
PACKAGES = {
    "gradtape": "gradtape",
    "numpy": "numpy",
    "h5py": "h5py",
    "pluggy": "pluggy",
    "xxhash": "xxhash",
    "scipy": "scipy",
    "llvmlite": "llvmlite",
    "jax": "jax",
    "cupy": "cupy",
    "onnx": "onnx",
    "sklearn": "scikit-learn",
    "matplotlib": "matplotlib",
    "threadpoolctl": "threadpoolctl",
}
VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
    "CUPY_CACHE_DIR",
    CACHE,
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
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": platform.platform(),
        "packages": {name: _version(module, name) for module, name in PACKAGES.items()},
        "cores": _cores(),
        "environment": {name: os.environ[name] for name in VARIABLES if name in os.environ},
        "blas": _blas(),
        "plugins": _plugins(),
        "backends": _backends(),
        "devices": _devices(),
        "executors": _executors(),
        "cache": _cache(),
    }
    if measure:
        found["product"] = _product()
    found["advice"] = _advice(found)
    return found


def doctor_json(measure: bool = True) -> str:
    """Return :func:`diagnosis` as JSON text."""
    return json.dumps(diagnosis(measure), indent=2)


def show_versions() -> None:
    """Print the versions of Python, gradtape and its libraries, and what computes here.

    Paste it into a report of a problem. It prints what ``gradtape doctor --no-measure`` does:
    plugins, backends, executors, BLAS and its threads, GPUs, and what to do about what is wrong.
    The path of your home folder is shortened to ``~``.

    Examples
    --------
    >>> gt.show_versions()  # doctest: +ELLIPSIS
    python       3...
    """
    print(doctor_text(measure=False))


def doctor_text(measure: bool = True) -> str:
    """Return :func:`diagnosis` in words, to be pasted into a report."""
    found = diagnosis(measure)
    cores, product = found["cores"], found.get("product")
    packages = [f"{name} {x or '(not installed)'}" for name, x in found["packages"].items()]
    lines = [
        ("python", found["python"]),
        ("system", found["system"]),
        ("packages", ", ".join(packages)),
        ("cores", _cores_told(cores)),
        ("environment", ", ".join(f"{k}={x}" for k, x in found["environment"].items()) or "-"),
        *(("blas", _pool_told(x)) for x in found["blas"]),
    ]
    if product:
        lines.append(("threads", _product_told(product)))
    lines += [("plugins", _plugin_told(x)) for x in found["plugins"]]
    for what in ("backends", "executors"):
        lines += [(what, f"{name}: {x or 'ready'}") for name, x in found[what].items()]
    cache = found["cache"]
    lines.append(("cache", f"{cache['path'] or 'none'}: {cache['problem'] or 'ready'}"))
    for name, told in found["devices"].items():
        lines += [(name, line) for line in told["lines"]]
    words = []
    last = None
    for head, text in lines:
        label = "" if head == last else head
        words.append(filled(f"{label:13}{text}", " " * 13))
        last = head
    advice = [filled(f"* {x}", "  ") for x in found["advice"]]
    told = "\n".join([*words, "", *(advice or ["Nothing to improve was found."])])
    return _without_home(told)


# -- what is there ---------------------------------------------------------------------------------


def _version(module: str, name: str) -> str | None:
    if module != "gradtape" and importlib.util.find_spec(module) is None:
        return None
    for called in (name, f"{name}-cuda12x", f"{name}-cuda13x"):  # CuPy has one for each CUDA
        with suppress(PackageNotFoundError):
            return version(called)
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


def _plugins() -> list[dict[str, Any]]:
    """Return the plugins that others provide, and those of ours that are not in use."""
    return [
        {
            "name": info.name,
            "distribution": info.distribution,
            "version": info.version,
            "problem": info.problem,
        }
        for info in quiet_registry().plugins
        if not info.ours or info.problem
    ]


def _cache() -> dict[str, str | None]:
    """Return where compiled loops are kept, and why they cannot be."""
    folder, problem = (None, None) if unavailable() else cache_folder()
    return {"path": str(folder) if folder else None, "problem": problem}


def _backends() -> dict[str, str | None]:
    return {name: x.unavailable() for name, x in quiet_registry().backends.items()}


def _devices() -> dict[str, Any]:
    """Return what backends tell of what they run on, those that have something to tell."""
    found = {name: x.diagnosis() for name, x in quiet_registry().backends.items()}
    return {name: told for name, told in found.items() if told}


def _executors() -> dict[str, str | None]:
    reasons = {"fused": unavailable() or unusable()}
    return {name: reasons.get(name) for name in quiet_registry().executors}


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
    advice += [_about_plugin(x) for x in found.get("plugins", ()) if _failed(x)]
    for told in found.get("devices", {}).values():
        advice += told["advice"]
    cache = found.get("cache", {})
    if cache.get("problem"):
        advice.append(
            f"Compiled loops cannot be kept in {cache['path']} ({cache['problem']}), so that every "
            f"process compiles them anew: set {CACHE} to a folder of your own, or to nothing to "
            "keep none."
        )
    if found["executors"].get("fused"):
        advice.append(f"Compiled functions would run faster: {found['executors']['fused']}.")
    return advice


def _failed(plugin: dict[str, Any]) -> bool:
    return plugin["problem"] not in (None, "disabled")


def _about_plugin(plugin: dict[str, Any]) -> str:
    """Return what to do about a plugin that is not in use."""
    name, distribution = plugin["name"], plugin["distribution"]
    problem = " ".join(plugin["problem"].split()).rstrip(".")
    mend = f"pip install --upgrade {distribution}" if distribution else "mend it"
    return (
        f"The plugin {name!r} is not in use. {problem}. Mend it ({mend}), or leave it out: "
        f"GRADTAPE_DISABLE_PLUGINS={name}."
    )


# -- in words --------------------------------------------------------------------------------------


def filled(text: str, indent: str) -> str:
    """Return text in lines; a command in it can be copied, names in it stay whole."""
    wrapper = textwrap.TextWrapper(
        100, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    return wrapper.fill(text)


def _without_home(text: str) -> str:
    """Return text without the path of the user's home, which has a name in it."""
    try:
        home = str(Path.home())
    except RuntimeError:  # nobody knows it
        return text
    return text.replace(f"{home}{os.sep}", f"~{os.sep}") if len(home) > 1 else text


def _plugin_told(plugin: dict[str, Any]) -> str:
    where = f" ({plugin['distribution']} {plugin['version']})" if plugin["distribution"] else ""
    problem = plugin["problem"]
    state = "in use" if problem is None else "disabled" if problem == "disabled" else "failed"
    return f"{plugin['name']}{where}: {state}"


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
