"""``check_plugin``: every check of everything that a plugin provides, as one report."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..core.errors import BackendUnavailable, PluginError, UnknownOp
from ..core.extend import PluginInfo, executor, near_names, registry
from .backends import check_backend, strict_backend
from .engines import check_engine
from .executors import check_executor
from .formats import check_format
from .ops import check_op
from .report import PASSED, REFUSED, WRONG, Findings, Report, reason_of
from .samples import Sample

#: What a check returns: its outcome and the reason.
Outcome = tuple[str, str]
UNCHECKED = "unchecked"
#: What is checked, or needs no check, by the attribute of ``PluginInfo``.
CHECKED = (
    *("ops", "late_ops", "rules", "kernels", "lowerings", "backends", "executors", "collectives"),
    *("formats", "samples", "hints"),
)


@dataclass(frozen=True)
class PluginReport(Report):
    """The findings of :func:`check_plugin`; its text lists everything that did not pass.

    Attributes
    ----------
    kind, name
        ``"plugin"``, and the plugin's name with its distribution and version.
    passed, refused, wrong
        What the plugin provides, such as ``"op acme::act"``, by outcome; with reasons.
    unchecked
        What was not checked, and why.
    parts
        The reports of its backends, executors, engines and formats.
    seconds
        The duration in seconds.

    Examples
    --------
    >>> report = gt.testing.check_plugin("executors", show=False)
    >>> report.wrong
    {}
    """

    unchecked: dict[str, str] = field(default_factory=dict)
    parts: list[Report] = field(default_factory=list)
    noun: ClassVar[str] = "parts"

    def as_dict(self) -> dict[str, Any]:
        """Return the report as a dictionary that JSON can hold.

        Returns
        -------
        dict
            The attributes by name, ``parts`` as dictionaries.
        """
        parts = [part.as_dict() for part in self.parts]
        return {**super().as_dict(), "unchecked": self.unchecked, "parts": parts}

    def __str__(self) -> str:
        width = max((len(name) for name in self.unchecked), default=0)
        rows = [f"{UNCHECKED}  {name:<{width}}  {why}" for name, why in self.unchecked.items()]
        return "\n".join([super().__str__(), *rows, *map(str, self.parts)])


def check_plugin(name: str, *, show: bool = True) -> PluginReport:
    """Check everything that a plugin provides, as ``gradtape plugins --check NAME`` does.

    Its ops are checked on the samples that plugins provide (hook ``gradtape_samples``), and so are
    ops for which it provides a kernel, gradients or a lowering. Backends, executors, engines and
    formats are checked by the functions for them.

    Parameters
    ----------
    name
        The plugin's name, its distribution's (for all plugins of that), or
        ``"distribution:name"``.
    show
        Whether to print the report.

    Returns
    -------
    PluginReport
        The findings.

    Raises
    ------
    LookupError
        If there is no such plugin.

    Examples
    --------
    >>> report = gt.testing.check_plugin("executors", show=False)
    >>> "executor planned" in report.passed
    True
    """
    infos = _named(name)
    findings = Findings("plugin", ", ".join(map(_title, infos)))
    unchecked: dict[str, str] = {}
    parts: list[Report] = []
    with warnings.catch_warnings(), strict_backend():  # which takes time to provide for each op
        warnings.simplefilter("ignore")
        for info in infos:
            for what, check in _checks(info, parts):
                try:
                    status, why = check()
                except Exception as error:
                    status, why = WRONG, reason_of(error)
                if status == UNCHECKED:
                    unchecked[what] = why
                else:
                    findings.note(what, status, why)
    report: PluginReport = findings.report(show, PluginReport, unchecked=unchecked, parts=parts)
    return report


def _named(name: str) -> list[PluginInfo]:
    """Return the plugins that a name means."""
    infos = registry().plugins
    found = [x for x in infos if name in (x.name, f"{x.distribution}:{x.name}")]
    found = found or [x for x in infos if x.distribution and x.distribution == name]
    if not found:
        raise LookupError(
            f"check_plugin: there is no plugin {name!r}; there are: "
            f"{', '.join(sorted(x.name for x in infos))}"
        )
    return found


def _title(info: PluginInfo) -> str:
    where = f" ({info.distribution} {info.version})" if info.distribution else ""
    return f"{info.name}{where}"


def _checks(info: PluginInfo, parts: list[Report]) -> Iterator[tuple[str, Callable[[], Outcome]]]:
    """Give the checks of what a plugin provides, by name."""
    yield "loading", partial(_verdict, WRONG if info.problem else PASSED, info.problem or "")
    for clash in info.clashes:
        yield f"clash: {clash}", partial(_verdict, REFUSED, clash)
    for prefix in info.late_ops:
        with suppress(PluginError, UnknownOp):
            registry().find(f"{prefix}::")
    for name in info.ops:
        yield f"op {name}", partial(_op, name)
    for name in sorted(set(info.rules) - set(info.ops)):
        yield f"gradients of {name}", partial(_op, name)
    for name, backend in info.kernels:
        yield f"kernel of {name} for {backend}", partial(_kernel, name, backend)
    for name, target in info.lowerings:
        yield f"lowering of {name} for {target}", partial(_lowering, name)
    for what, why in _misspelt(info):
        yield what, partial(_verdict, WRONG, why)
    tables: tuple[tuple[str, Iterable[str], Callable[[str], Report]], ...] = (
        ("backend", info.backends, lambda name: check_backend(name, show=False)),
        ("executor", info.executors, lambda name: check_executor(name, show=False)),
        ("engine", info.collectives, lambda name: check_engine(name, show=False)),
        ("format", info.formats, lambda name: check_format(name, show=False)),
    )
    for kind, names, check in tables:
        for name in names:
            yield f"{kind} {name}", partial(_part, name, check, parts)
    for kind, provided in info.provides.items():
        if provided and kind not in CHECKED:
            why = f"{len(provided)}: there is no check of {kind}; test them in the plugin's suite"
            yield kind, partial(_verdict, UNCHECKED, why)


def _verdict(status: str, why: str) -> Outcome:
    return status, why


def _misspelt(info: PluginInfo) -> Iterator[tuple[str, str]]:
    """Give the names of a plugin that nothing looks up, and why."""
    found = registry()
    for name in info.samples:
        if not name.startswith("gt.") and not _is_op(name):
            yield f"samples of {name}", f"no plugin provides this op{near_names(name, info.ops)}"
    others = [x for x in found.plugins if x.name != info.name]
    targets = {target for other in others for _, target in other.lowerings}
    targets |= found.executors.keys() | found.exporters.keys()
    services = {name for other in others for name in other.services}
    used: list[tuple[str, set[str], list[str]]] = [
        ("target", targets, [target for _, target in info.lowerings]),
        ("service", services, info.services),
    ]
    for kind, known, names in used:
        for name in dict.fromkeys(names):
            near = near_names(name, known, cutoff=0.75)  # otherwise it may be the plugin's own
            if name not in known and near:
                yield f"{kind} {name}", f"nothing looks up this name{near}"


def _is_op(name: str) -> bool:
    with suppress(PluginError, UnknownOp):
        return registry().op(name) is not None
    return False


def _samples(name: str) -> list[Sample] | None:
    return list(registry().samples.get(name, ())) or None


def _op(name: str) -> Outcome:
    samples = _samples(name)
    if samples is None:
        return UNCHECKED, "it has no samples; provide them by the hook gradtape_samples"
    check_op(registry().op(name), samples)
    return PASSED, ""


def _kernel(name: str, backend: str) -> Outcome:
    """Check a kernel on its backend; on NumPy's arrays, against the portable kernel too."""
    samples = _samples(name)
    if samples is None:
        return UNCHECKED, "the op has no samples; provide them by the hook gradtape_samples"
    found = registry()
    owner = found.backend(backend)
    reason = owner.unavailable()
    if reason:
        return REFUSED, reason
    if not owner.host:
        return _summary(check_backend(backend, only=[name], show=False))
    op = found.op(name)
    try:
        portable = owner.bind(op.kernel)
    except AttributeError:  # it needs a kernel for each backend
        check_op(op, samples)
        return PASSED, ""
    for sample in samples:
        arrays = [np.array(x) if isinstance(x, np.ndarray) else x for x in sample.inputs]
        params = {**op.defaults, **sample.params}
        try:
            want = portable(*arrays, **params)
        except Exception:  # such inputs are converted before
            continue
        got = found.kernel(op, owner)(*arrays, **params)
        several = isinstance(want, (list, tuple))
        pairs = zip(got, want, strict=True) if several else [(got, want)]
        for mine, right in pairs:
            if not np.allclose(mine, right, rtol=1e-9, atol=1e-11, equal_nan=True):
                raise AssertionError(f"{sample!r}: {mine} instead of the portable kernel's {right}")
    return PASSED, ""


def _lowering(name: str) -> Outcome:
    """Check that traces of an op give the same by every executor."""
    if _samples(name) is None:
        return UNCHECKED, "the op has no samples; provide them by the hook gradtape_samples"
    for runs in registry().executors:
        with executor(runs):
            status, why = _summary(check_backend("numpy", only=[name], traced=True, show=False))
        if status != PASSED:
            return status, f"by the executor {runs!r}: {why}"
    return PASSED, ""


def _part(name: str, check: Callable[[str], Report], parts: list[Report]) -> Outcome:
    """Run the check of a backend, an executor, an engine or a format."""
    try:
        part = check(name)
    except (BackendUnavailable, ModuleNotFoundError) as error:
        return REFUSED, reason_of(error)
    except TypeError as error:
        if "is not written by save_weights" in str(error):
            return UNCHECKED, "a text, which says what to call instead"
        raise
    parts.append(part)
    return _summary(part)


def _summary(part: Report) -> Outcome:
    """Return the outcome of a report: refusals of some parts are not those of the whole."""
    if part.wrong:
        (what, why), *rest = part.wrong.items()
        return WRONG, f"{what}: {why}" + (f" (and {len(rest)} more)" if rest else "")
    if part.refused and not part.passed:
        (what, why), *_ = part.refused.items()
        return REFUSED, f"{what}: {why}"
    return PASSED, ""
