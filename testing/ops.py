"""``check_op``: checks everything that an op must do, on samples of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..core.extend import Op, registry
from .backends import strict_backend
from .report import PASSED, OpReport, quiet
from .samples import CHECKS, Sample
from .trials import RUNS, Trial
from .trials.trial import naming

__all__ = ["PASSED", "check_op"]


def check_op(
    op: Op | Callable[..., Any],
    samples: Iterable[Sample] | None = None,
    *,
    seed: int = 0,
    backends: Iterable[str] | None = None,
) -> OpReport:
    """Check an op, or a function made of ops, on samples.

    Every sample runs through these checks, and every run must leave its inputs unchanged:

    ==================  ============================================================================
    ``gradients``       the tape's gradients agree with finite differences (see
                        :func:`check_gradients`); an op without gradient rules gives None
    ``second order``    the same for gradients of the gradients
    ``linear``          gradients are linear in the upstream gradient, however large or small it is;
                        skip this check for an op that clips it on purpose
    ``forward``         forward mode is the transpose of reverse mode: ``<u, J t> = <Jᵀ u, t>``
    ``traced``          a trace gives the values and gradients of the eager run, and the shape rule
                        gives the actual shapes and dtypes
    ``known sizes``     for known sizes the shape rule gives known sizes
    ``unknown sizes``   as ``traced``, with sizes that the trace does not know
    ``unknown rank``    as ``traced``, with ranks that the trace does not know, unless the op
                        refuses them with ``TypeError`` or ``ValueError``
    ``batched``         ``vmap`` gives the values and gradients of a loop over two examples,
                        whichever inputs have the batch axis, of whichever rank, and inside another
                        ``vmap``; a tape outside it gives the sum of the gradients for the others.
                        The op may refuse batches with ``TraceError``
    ``traced batch``    as ``batched``, in a trace, also with an unknown number of examples
    ``saved``           after saving and loading, values and gradients are the same
    ``float32``         single precision gives the values and gradients of double precision, up to
                        rounding, and gradients have the dtype of their input
    ``float16``         in half precision, results are as the shape rule says, and gradients have
                        the dtype of their input, unless the op refuses it with ``TypeError``
    ``strided``         arrays that are not contiguous give the same results
    ``empty``           arrays without elements give results without elements (elementwise ops only)
    ``backend``         results and gradients of arrays of another library are arrays of it, with
                        the same values, unless the op raises an error there
    ==================  ============================================================================

    Parameters
    ----------
    op
        An op, or a function of tensors that returns one or several tensors.
    samples
        The arguments of the calls: at least one :class:`Sample`. By default those that a plugin
        provides for the op (hook ``gradtape_samples``).
    seed
        The seed of the random weights of the gradient checks; 0 by default.
    backends
        The names of backends to run on, besides NumPy's. By default ``array-api-strict``, which has
        only the functions of the array API standard, if this library is installed.

    Returns
    -------
    OpReport
        A dictionary with the outcome of each check: ``"passed"`` if a sample passed it, otherwise
        why it was skipped or refused. Its attribute ``ok`` is true if no check was refused.

    Raises
    ------
    AssertionError
        If a check fails; the message names the op, the sample, the check and the difference.
    TypeError
        If one of the samples is not a :class:`Sample`.
    ValueError
        If there are no samples.
    LookupError
        If no plugin provides one of the backends.

    Examples
    --------
    >>> report = gt.testing.check_op(gt.sum, [gt.testing.Sample(np.ones((2, 3)), axis=0)])
    >>> report.ok, report["second order"]
    (True, 'passed')
    """
    name = op.name if isinstance(op, Op) else getattr(op, "__name__", repr(op))
    report = OpReport()
    given = _provided(op, name) if samples is None else samples
    count = 0
    with strict_backend(wanted=backends is None) as strict:
        places = tuple(strict if backends is None else backends)
        for place in places:
            registry().backend(place.partition(":")[0])
        for sample in given:
            if not isinstance(sample, Sample):
                raise TypeError(
                    f"check_op: samples must be an iterable of gradtape.testing.Sample, got "
                    f"{type(sample).__name__}; write [Sample(x, ...)] for the inputs x, ..."
                )
            count += 1
            _check(Trial(op, sample, seed, places), name, report)
    if not count:
        raise ValueError(f"check_op: {name} has no samples")
    return report


def _provided(op: Op | Callable[..., Any], name: str) -> Iterable[Sample]:
    """Return the samples that a plugin provides for an op."""
    found = registry().samples.get(name) if isinstance(op, Op) else None
    if found is None:
        raise ValueError(
            f"check_op: {name} has no samples; pass a list of gradtape.testing.Sample, or provide "
            "it by the hook gradtape_samples"
        )
    return found


def _check(trial: Trial, name: str, report: OpReport) -> None:
    """Add the outcomes of one sample to a report."""
    sample = trial.sample
    for check in CHECKS:
        reason = sample.exempt.get(check)
        if check == "traced batch":  # which needs a trace and a batch
            reason = reason or sample.exempt.get("traced") or sample.exempt.get("batched")
        if reason is None:
            with naming(f"{name}, {sample!r}, {check}"), quiet():
                reason = RUNS[check](trial)
        known = report.get(check)
        if reason is None:
            report[check] = PASSED
        elif known is None or (known != PASSED and check not in report.refused):
            report[check] = reason
