"""``gradtape doctor``: reports versions, backends, cores and threads, and suggests improvements."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from ..core.errors import BackendUnavailable
from ..core.extend import DISABLE, cores, lazy_module, public_package, quota, registry, threads
from ..plugins.numpy.backend import NEEDED, pools
from ..training import threads as waiting
from .launching import THREADS
from .plugins import all_ops, answer_of, quietly
from .plugins import unavailable as no_backend

#: The parts of a section with a meaning, and their types.
_PARTS = {"lines": list, "advice": list, "variables": list, "packages": dict}
#: Times a matrix product of a small network; prints the median, the mean and the 99th percentile
#: in µs.
PRODUCT = """
import time, numpy as np
a, b = np.ones((128, 784), "f"), np.ones((784, 256), "f")
for _ in range(5): a @ b
times, end = [], time.perf_counter() + 0.4
while time.perf_counter() < end:
    start = time.perf_counter(); a @ b; times.append(time.perf_counter() - start)
times.sort()
mean, worst = sum(times) / len(times), times[-1 - len(times) // 100]
print(times[len(times) // 2] * 1e6, mean * 1e6, worst * 1e6)
"""


def diagnosis(measure: bool = True) -> dict[str, Any]:
    """Return the report as a tree of JSON values.

    Parameters
    ----------
    measure
        Whether to time a matrix product with one thread and with BLAS's own number of threads.
        This takes about two seconds.
    """
    with quietly():
        found = _findings()
    if measure:
        found["product"] = _product()
    found["advice"] = [*_advice(found), *found.pop("broken")]
    return found


def _findings() -> dict[str, Any]:
    """Return the report without what is measured and the advice."""
    sections, broken = _sections()
    packages = {"gradtape": "gradtape"}
    variables: dict[str, None] = {}
    for told in sections.values():
        packages |= told.pop("packages", {})
        variables |= dict.fromkeys(told.pop("variables", ()))
    return {
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": platform.platform(),
        "installation": _installation(),
        "packages": dict(_version(module, names) for module, names in packages.items()),
        "cores": _cores(),
        "environment": {name: os.environ[name] for name in variables if name in os.environ},
        "blas": _blas(),
        "plugins": _plugins(),
        "backends": _backends(),
        "devices": _devices(),
        "executors": _executors(),
        "sections": {name: told for name, told in sections.items() if told},
        "broken": broken,
    }


def doctor_json(measure: bool = True) -> str:
    """Return :func:`diagnosis` as JSON text."""
    return json.dumps(diagnosis(measure), indent=2)


def show_versions() -> None:
    """Print the versions of Python, gradtape and its libraries, and the hardware in use.

    Paste the output into a bug report. ``gradtape doctor --no-measure`` prints the same: plugins,
    backends, executors, BLAS and its threads, GPUs, and advice on problems. The path of your home
    folder is shortened to ``~``.

    Examples
    --------
    >>> gt.show_versions()  # doctest: +ELLIPSIS
    python       3...
    """
    print(doctor_text(measure=False))


def doctor_text(measure: bool = True) -> str:
    """Return :func:`diagnosis` as text for a bug report."""
    found = diagnosis(measure)
    cores, product = found["cores"], found.get("product")
    packages = [f"{name} {x or '(not installed)'}" for name, x in found["packages"].items()]
    lines = [
        ("python", found["python"]),
        ("system", found["system"]),
        ("packages", ", ".join(packages)),
        ("cores", _cores_text(cores)),
        ("environment", ", ".join(f"{k}={x}" for k, x in found["environment"].items()) or "-"),
        *(("blas", _pool_text(x)) for x in found["blas"]),
    ]
    if product:
        lines.append(("threads", _product_text(product)))
    lines += [("plugins", _plugin_text(x)) for x in found["plugins"]]
    for what in ("backends", "executors"):
        lines += [(what, f"{name}: {x or 'ready'}") for name, x in found[what].items()]
    for name, told in (*found["sections"].items(), *found["devices"].items()):
        lines += [(name, line) for line in told.get("lines", ())]
    words = []
    last = None
    for head, text in lines:
        label = "" if head == last else head
        words.append(filled(f"{label:13}{text}", " " * 13))
        last = head
    advice = [filled(f"* {x}", "  ") for x in found["advice"]]
    told = "\n".join([*words, "", *(advice or ["Found nothing to improve."])])
    return _without_home(told)


# -- the installation ------------------------------------------------------------------------------


def _installation() -> dict[str, str | None]:
    """Return the version and folder of gradtape's code, and those of its metadata, if any."""
    found: dict[str, str | None] = dict.fromkeys(("metadata", "metadata_folder"))
    with suppress(Exception):  # not installed, or metadata that cannot be read
        installed = distribution("gradtape")
        found = {"metadata": installed.version, "metadata_folder": str(installed.locate_file(""))}
    folder = str(Path(__file__).parents[1])
    return {"version": str(public_package().__version__), "folder": folder, **found}


def _version(module: str, names: str | list[str]) -> tuple[str, str | None]:
    """Return a package's name, and the version of the first of its distributions that is here."""
    first, *others = [names] if isinstance(names, str) else names
    if module == "gradtape":  # of the code, whatever metadata is installed
        return first, str(public_package().__version__)
    try:
        if importlib.util.find_spec(module) is None:
            return first, None
    except (ImportError, ValueError):  # of a package that is not here; or an imitation of a module
        return first, "?" if module in sys.modules else None
    for name in (first, *others):
        with suppress(PackageNotFoundError, ValueError):
            return first, version(name)
    return first, "?"


def _cores() -> dict[str, Any]:
    """Return the machine's cores, what this process may use of them, its threads, and the load."""
    return {
        "machine": os.cpu_count(),
        "allowed": len(cores()),
        "quota": quota(),
        "threads": threads(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def _blas() -> list[dict[str, Any]]:
    """Return BLAS's thread pools; without threadpoolctl, the BLAS that NumPy was built with."""
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
    """Return all plugins."""
    return [
        {
            "name": info.name,
            "distribution": info.distribution,
            "version": info.version,
            "problem": info.problem,
            "choice": info.choice,
        }
        for info in all_ops().plugins
    ]


def _sections() -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return what plugins report, by section, and advice on those that cannot."""
    known = registry()
    found: dict[str, dict[str, Any]] = {}
    broken = []
    for name, diagnose in known.diagnoses.items():
        told, problem = answer_of(partial(_json_section, diagnose))
        if problem:
            broken.append(f"{known.owner('diagnosis', name)} cannot report {name!r}: {problem}.")
        else:
            found[name] = told
    clashes = [told for (kind, _), told in known.clashes.items() if kind == "diagnosis"]
    return found, [*broken, *clashes]


def _json_section(diagnose: Callable[[], Any]) -> dict[str, Any]:
    """Return a section as JSON values, after checking the parts that have a meaning."""
    told = json.loads(json.dumps(diagnose()))
    if not isinstance(told, dict):
        raise TypeError(f"it is {type(told).__name__}, not a mapping")
    for key, kind in _PARTS.items():
        part = told.get(key, kind())
        if not isinstance(part, kind):
            raise TypeError(f"{key!r} is {type(part).__name__}")
        texts = (
            [x for y in part.values() for x in (y if isinstance(y, list) else [y])]
            if isinstance(part, dict)
            else part
        )
        if any(type(x) is not str or not x for x in texts):
            raise TypeError(f"{key!r} holds something else than texts")
    return told


def _backends() -> dict[str, str | None]:
    return {name: no_backend(x) for name, x in registry().backends.items()}


def _devices() -> dict[str, Any]:
    """Return what backends report about their devices, for those that report anything."""
    found = {}
    for name, backend in registry().backends.items():
        found[name], problem = answer_of(partial(_json_section, backend.diagnosis))
        if problem:
            advice = f"The backend {name!r} cannot report: {problem}."
            found[name] = {"lines": [], "advice": [advice]}
    return {name: told for name, told in found.items() if told}


def _executors() -> dict[str, str | None]:
    """Return why executors cannot be used, for those that say so."""
    found = {}
    for name, executor in registry().executors.items():
        found[name], problem = answer_of(getattr(executor, "unavailable", lambda: None))
        if problem:
            found[name] = f"unavailable() raised {problem}"
        elif found[name] is not None:
            found[name] = str(found[name])
    return found


# -- the cost of threads ---------------------------------------------------------------------------


def _product() -> dict[str, Any] | None:
    """Time a product in separate processes: with one thread, and with BLAS's own number."""
    if lazy_module("saving.container.child").no_python():
        return None
    found = {}
    for name, settings in (("one", dict.fromkeys(THREADS, "1")), ("all", {})):
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
        median, mean, worst = map(float, run.stdout.split())
        found[name] = {"median_us": median, "mean_us": mean, "worst_us": worst}
    return found


def _about_threads(product: dict[str, Any]) -> str | None:
    """Return what is wrong if products take longer on average with all threads than with one."""
    one, every = product["one"], product["all"]
    mean = every["mean_us"] / one["mean_us"]
    if mean <= waiting.COSTLY:
        return None
    median = every["median_us"] / one["median_us"]
    most = ""
    if median <= 1.0:
        most = f", although most take {median:.1f} times as long"
    return (
        f"With all threads, matrix products take {mean:.1f} times as long on average as with one"
        f"{most}: other processes use the cores, and threads wait for each other."
    )


def _advice(found: dict[str, Any]) -> list[str]:
    """Return advice on the findings."""
    advice = _about_installation(found.get("installation", {}))
    cores = found["cores"]
    usable = min(x for x in (cores["allowed"], cores["quota"]) if x is not None)
    of_blas = max((x["num_threads"] or 0 for x in found["blas"]), default=0)
    wrong = waiting.too_many(of_blas, usable)
    if wrong is not None:
        advice.append(f"{wrong} {_limit(max(1, int(usable)))}")
    elif found.get("product"):
        wrong = _about_threads(found["product"])
        if wrong is not None:
            advice.append(f"{wrong} {_limit(1)}")
    if any(x["num_threads"] is None for x in found["blas"]):
        advice.append(f"The number of BLAS threads is unknown: {NEEDED}.")
    named = found.get("environment", {}).get("GRADTAPE_EXECUTOR")
    if named and named not in found["executors"]:
        advice.append(
            f"GRADTAPE_EXECUTOR names {named!r}, which is not an executor: compiled functions "
            f"cannot run. Set it to one of {', '.join(found['executors'])}, or unset it."
        )
    advice += [_about_plugin(x) for x in found.get("plugins", ()) if _failed(x)]
    for told in found.get("devices", {}).values():
        advice += told.get("advice", ())
    for told in found.get("sections", {}).values():
        advice += told.get("advice", ())
    for name, reason in found["executors"].items():
        if reason:
            advice.append(f"Compiled functions could run faster, with {name!r}: {reason}.")
    return advice


def _limit(count: int) -> str:
    """Return how to use so many threads."""
    return (
        f"Set OMP_NUM_THREADS={count} before Python starts, or call gt.limit_threads({count}). "
        "(Several processes should together have as many threads as there are cores.)"
    )


def _about_installation(installed: dict[str, str | None]) -> list[str]:
    """Return advice if the metadata on the path is not that of the code in use."""
    code, metadata = installed.get("version"), installed.get("metadata")
    folder = installed.get("folder") or ""
    if metadata == code:
        return []
    if metadata is not None:
        return [
            f"The code of gradtape in {folder} is of version {code}, but its metadata in "
            f"{installed['metadata_folder']} is of version {metadata}, which pip and other "
            "packages read. Run pip install --force-reinstall gradtape."
        ]
    told = f"pip does not know the gradtape in {folder}: its metadata is missing."
    if (Path(folder) / "setup.py").exists():  # a checkout
        return [f"{told} Run pip install {folder}."]
    return [f"{told} If that is not on purpose, run pip install --force-reinstall gradtape."]


def _failed(plugin: dict[str, Any]) -> bool:
    return plugin["problem"] not in (None, "disabled")


def _about_plugin(plugin: dict[str, Any]) -> str:
    """Return advice on a plugin that is not in use."""
    name, distribution = plugin["name"], plugin["distribution"]
    problem = " ".join(plugin["problem"].split()).rstrip(".")
    fix = f" (pip install --upgrade {distribution})" if distribution else ""
    return (
        f"The plugin {name!r} is not in use. {problem}. Fix it{fix}, or disable it with "
        f"{DISABLE}={plugin['choice']}."
    )


# -- as text ---------------------------------------------------------------------------------------


def filled(text: str, indent: str) -> str:
    """Return text wrapped into lines; names and the words of commands are not broken."""
    wrapper = textwrap.TextWrapper(
        100, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    return wrapper.fill(text)


def _without_home(text: str) -> str:
    """Return text with ``~`` instead of the user's home folder, whose path contains a name."""
    try:
        home = str(Path.home())
    except RuntimeError:  # unknown
        return text
    return text.replace(f"{home}{os.sep}", f"~{os.sep}") if len(home) > 1 else text


def _plugin_text(plugin: dict[str, Any]) -> str:
    where = f" ({plugin['distribution']} {plugin['version']})" if plugin["distribution"] else ""
    problem = plugin["problem"]
    state = "in use" if problem is None else "disabled" if problem == "disabled" else "failed"
    return f"{plugin['name']}{where}: {state}"


def _cores_text(cores: dict[str, Any]) -> str:
    told = f"{cores['machine']}, {cores['allowed']} of them for this process"
    if cores["quota"] is not None:
        told += f", time for {cores['quota']:g}"
    told += f"; gradtape's threads: {cores['threads']}"
    return told if cores["load"] is None else f"{told}; load {cores['load']:.1f}"


def _pool_text(pool: dict[str, Any]) -> str:
    threads = "?" if pool["num_threads"] is None else pool["num_threads"]
    return f"{pool['internal_api']} {pool['version'] or ''}, threads: {threads}"


def _product_text(product: dict[str, Any]) -> str:
    one, every = product["one"], product["all"]
    return (
        f"a product of a 128 by 784 and a 784 by 256 matrix takes {_times(one)} with one thread, "
        f"{_times(every)} with all"
    )


def _times(told: dict[str, float]) -> str:
    median, mean, worst = told["median_us"], told["mean_us"], told["worst_us"]
    return f"{median:,.0f} µs (on average {mean:,.0f}; 1 % more than {worst:,.0f})"
