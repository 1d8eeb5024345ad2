"""Where gradtape falls behind: each function beside NumPy's, and each gradient beside its value.

``python docs/benchmarks/cliffs.py`` prints the tables of ``docs/benchmarks/README.md``: what takes
more than five times as long as the same call in NumPy, or whose gradient takes more than five times
as long as the value. A gradient has to write an array of its source's size, which is the least that
it is compared with: views cost nothing. What takes less than 50 µs is not shown, since each op of
gradtape costs some µs whatever it works on. ``--all`` prints every row, ``--only WORD`` those with
a word in the call, and ``--size N`` sets the number of elements. All runs eagerly, on float64, and
processor time is counted: set ``OMP_NUM_THREADS=1``.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections.abc import Callable, Iterator
from math import isqrt
from typing import Any

import numpy as np
from timing import table

import gradtape as gt

#: Calls of functions that NumPy has too, on what :func:`arrays` returns.
CALLS = """
abs(x) acos(p) acosh(p+1) add(x,y) all(b) any(c) amax(m,axis=0) angle(z) append(x,y) arange(n)
apply_along_axis(total,0,m) asin(p) asinh(x) atan(x) atan2(x,y) atanh(p) arccos(p) arctan2(x,y)
argmax(x) argmax(m,axis=0) argmax(m,axis=1) argmin(x) argpartition(x,n//2) argpartition(m,5,axis=0)
argsort(x) argsort(m,axis=0) argsort(i) argwhere(b) around(x,2) array_split(x,7) asarray(x)
astype(x,'float64') astype(x,'int32') atleast_2d(x) average(x) average(x,weights=p) bincount(i)
bincount(i,p) bitwise_and(i,j) bitwise_count(i) bitwise_invert(i) bitwise_left_shift(i,1)
bitwise_or(i,j) bitwise_right_shift(i,1) bitwise_xor(i,j) block([[m,m],[m,m]]) block([x,y])
block([[x],[y]]) broadcast_arrays(x,1.0) broadcast_to(w,(n//100,100)) cbrt(x) ceil(x)
choose(b*1,[x,y]) choose(i%3,[x,y,p]) clip(x,-0.5,0.5) column_stack([x,y]) compress(b,x)
compress(b,x,axis=0) concat([x,y]) concatenate([m,m],axis=1) concatenate([m,m]) conj(z) conj(x)
convolve(x,w[:5]) convolve(x,w) copy(x) copysign(x,y) corrcoef(m[:20]) correlate(x,w[:5],'same')
cos(x) cosh(x) count_nonzero(b) count_nonzero(x) cov(m[:20]) cross(v3,u3) cumprod(r)
cumprod(rt,axis=1) cumprod(rm,axis=0) cumsum(x) cumsum(t,axis=1) cumsum(m,axis=0)
cumulative_prod(r) cumulative_sum(x) deg2rad(x) delete(x,5) delete(x,[1,5]) delete(x,slice(1,n,2))
delete(m,1,axis=1) diag(w) diag(q) diagflat(w) diagonal(m) diff(x) diff(t,axis=1) diff(m,axis=0)
diff(x,n=3) divide(x,p) divmod(x,p) dot(x,y) dot(q,q) dstack([x,y]) ediff1d(x)
einsum('ij,jk->ik',q,q) einsum('ij->j',m) einsum('i,i->',x,y) einsum('ij,ij->i',m,m) empty_like(x)
equal(x,y) exp(x) exp2(x) expand_dims(x,0) expm1(x) extract(b,x) eye(100) fabs(x) fix(x)
flatnonzero(b) flip(x) flip(m,axis=1) fliplr(m) flipud(m) float_power(p,2.5) floor(x)
floor_divide(x,p) fmax(x,y) fmin(x,y) fmod(x,p) frexp(x) full((n,),2.0) full_like(x,2.0) gcd(i,j)
geomspace(1.0,9.0,n) gradient(x) gradient(m) greater(x,y) heaviside(x,0.5) histogram(x)
histogram(x,100) histogram_bin_edges(x) hsplit(m,2) hstack([x,y]) hypot(x,y) i0(x) imag(z)
inner(x,y) insert(x,5,1.0) insert(x,[1,5],[1.0,2.0]) insert(x,i[:9],1.0) insert(m,1,0.0,axis=1)
interp(x,s,p) intersect1d(i,j) intersect1d(x,y) isclose(x,y) isfinite(x) isin(i,j) isin(x,y)
isin(x,w) isinf(x) isnan(x) isneginf(x) kron(w,x[:n//100]) kron(q[:9,:9],q) lcm(i,j) ldexp(x,i%5)
less_equal(x,y) linspace(0.0,1.0,n) log(p) log10(p) log1p(p) log2(p) logaddexp(x,y) logaddexp2(x,y)
logical_and(b,c) logical_not(b) logical_xor(b,c) logspace(0.0,1.0,n) matmul(q,q) matmul(m,m.T)
matmul(b3,b3) matrix_transpose(m) matvec(q,w[:k]) max(x) max(t,axis=1) max(m,axis=0) max(m,axis=1)
maximum(x,y) mean(x) mean(m,axis=0) mean(m,axis=1) median(x) median(t,axis=1) median(m,axis=0)
median(m,axis=1) meshgrid(w,w) min(m,axis=1) mod(x,p) modf(x) moveaxis(m,0,1) multiply(x,y)
nan_to_num(x) nan_to_num(nx) nanargmax(nx) nanargmin(nx) nancumprod(nx) nancumsum(nx) nanmax(nx)
nanmean(nx) nanmedian(nx) nanmin(nx) nanpercentile(nx,30) nanprod(nx) nanprod(rt,axis=1)
nanquantile(nx,0.3) nanstd(nx) nansum(nx) nanvar(nx) negative(x) nextafter(x,y) nonzero(b)
nonzero(x) not_equal(x,y) ones_like(x) ones((n,)) outer(w,x[:n//100]) pad(x,5) pad(x,5,mode='edge')
pad(x,5,mode='wrap') pad(x,5,mode='reflect') pad(x,5,mode='symmetric') pad(x,5,mode='mean')
pad(x,5,mode='maximum') pad(x,5,mode='median') pad(x,5,mode='linear_ramp') pad(m,2)
pad(m,2,mode='edge') pad(m,2,mode='reflect') partition(x,n//2) partition(m,5,axis=0)
percentile(x,30) percentile(x,[10,50,90]) permute_dims(m,(1,0))
piecewise(x,[x<0,x>=0],[minus,squared]) piecewise(x,[x<0],[-1.0,1.0]) poly(w[:20]) polyadd(x,w)
polyder(x) polydiv(w,w[:5]) polyfit(s[:k],x[:k],3) polyint(w) polyint(x) polymul(w,w) polysub(x,w)
polyval(w[:5],x) positive(x) power(p,y) power(x,2) prod(r) prod(rt,axis=1) prod(rm,axis=0)
prod(rm,axis=1) ptp(x) quantile(x,0.3) quantile(m,0.3,axis=0) rad2deg(x) ravel(m) ravel(m.T)
real(z) real_if_close(z) reciprocal(p) remainder(x,p) repeat(x,3) repeat(m,2,axis=1) repeat(x,i%4)
reshape(x,(-1,10)) resize(x,(n,2)) right_shift(i,1) rint(x) roll(x,3) roll(m,(1,2),axis=(0,1))
rollaxis(m,1) roots(w[:20]) rot90(m) round(x,2) searchsorted(s,x) searchsorted(s,w)
select([x<0,x>0],[x,y]) select([x<0,x>0],[x,y],9.0) setdiff1d(i,j) setdiff1d(x,y) setxor1d(i,j)
setxor1d(x,y) sign(x) signbit(x) sin(x) sinc(x) sinh(x) sort(x) sort(m,axis=0) sort(i)
sort(t,axis=1) spacing(x) split(x,10) sqrt(p) square(x) squeeze(m) stack([x,y]) stack([x,y],axis=1)
std(x) std(t,axis=1) std(m,axis=0) std(m,axis=1) subtract(x,y) sum(x) sum(t,axis=1) sum(m,axis=0)
sum(m,axis=1) swapaxes(m,0,1) take(x,i%n) take(m,i%9,axis=0) take(m,i[:9]%9,axis=1)
take_along_axis(m,m.argsort(axis=1),axis=1) tan(x) tanh(x) tensordot(q,q,1) tensordot(m,m,2)
tile(x,3) tile(m,(2,2)) trace(q) transpose(m) trapezoid(x) trapezoid(m,axis=0) tri(k) tril(m)
trim_zeros(x) triu(m) trunc(x) union1d(i,j) union1d(x,y) unique(i) unique(x) unique_all(x)
unique_counts(x) unique_inverse(x) unique_values(x) unstack(m) unwrap(x) vander(w,5) vander(x,4)
var(x) var(m,axis=0) var(m,axis=1) vdot(x,y) vecdot(m,m) vecmat(w[:k],q) vsplit(m,2) vstack([x,y])
where(b,x,y) where(b,x,0.0) where(b) zeros_like(x) linalg.cholesky(spd) linalg.cholesky(spd3)
linalg.cond(q) linalg.cond(b3) linalg.cross(v3,u3) linalg.det(q) linalg.det(b3) linalg.diagonal(b3)
linalg.eig(q) linalg.eigh(spd) linalg.eigh(spd3) linalg.eigvals(q) linalg.eigvalsh(spd)
linalg.eigvalsh(spd3) linalg.inv(q) linalg.inv(b3) linalg.lstsq(q,w[:k]) linalg.matrix_norm(b3)
linalg.matrix_norm(b3,ord=2) linalg.matrix_norm(b3,ord='nuc') linalg.matrix_norm(b3,ord=1)
linalg.matrix_power(q,5) linalg.matrix_power(b3,5) linalg.matrix_rank(q) linalg.multi_dot([q,q,q])
linalg.norm(x) linalg.norm(m,axis=1) linalg.norm(t,axis=1) linalg.norm(x,ord=3)
linalg.norm(x,ord=1) linalg.norm(q,ord=2) linalg.outer(w,x[:n//100]) linalg.pinv(q) linalg.pinv(b3)
linalg.qr(q) linalg.qr(b3) linalg.slogdet(q) linalg.slogdet(b3) linalg.solve(q,w[:k])
linalg.solve(b3,v3[...,None]) linalg.svd(q) linalg.svd(b3) linalg.svdvals(q) linalg.svdvals(b3)
linalg.tensorinv(q,ind=1) linalg.trace(b3) linalg.vecdot(m,m) linalg.vector_norm(m,axis=1)
linalg.vector_norm(x,ord=3) fft.fft(x) fft.fft2(m) fft.fftfreq(n) fft.fftn(m) fft.fftshift(x)
fft.hfft(z) fft.ifft(z) fft.ifft2(m) fft.ifftshift(x) fft.ihfft(x) fft.irfft(z) fft.irfft2(m)
fft.rfft(x) fft.rfft2(m) fft.rfftfreq(n) fft.rfftn(m)
"""


def arrays(n: int) -> dict[str, Any]:
    """Return what the calls are about, of ``n`` elements each, as NumPy arrays.

    ``x, y`` are vectors of random numbers, ``nx`` one with nan, ``p`` and ``s`` of positive and of
    sorted ones, ``r`` of numbers near 1, ``z`` complex, ``i, j`` of integers, ``b, c`` of booleans,
    ``w`` of 100 elements; ``m, rm`` are matrices, ``t, rt`` with rows of ten, ``q`` of at most 100
    by 100, ``spd`` positive definite; ``b3, spd3, v3, u3`` batches of small matrices and vectors.
    """
    random = np.random.default_rng(0)
    x, y = random.normal(size=(2, n))
    k = min(100, isqrt(n))
    q = random.normal(size=(k, k)) / k**0.5
    b3 = random.normal(size=(n // 10, 3, 3))
    v3, u3 = random.normal(size=(2, n // 10, 3))
    r = np.exp(x / 1000)
    i, j = random.integers(0, n, size=(2, n))
    found = {"x": x, "y": y, "p": random.uniform(0.1, 0.9, n), "s": np.sort(x), "z": x + 1j * y}
    found |= {"nx": np.where(y > 1, np.nan, x), "i": i, "j": j, "b": x > 0, "c": y > 0}
    found |= {"w": y[:100].copy(), "m": x.reshape(-1, 100), "t": x.reshape(-1, 10)}
    found |= {"r": r, "rm": r.reshape(-1, 100), "rt": r.reshape(-1, 10)}
    found |= {"q": q, "spd": q @ q.T + np.eye(k), "b3": b3, "v3": v3, "u3": u3}
    return found | {"spd3": b3 @ np.swapaxes(b3, 1, 2) + np.eye(3)}


def names(xp: Any, given: dict[str, Any], n: int) -> dict[str, Any]:
    """Return the names that calls use, with functions of NumPy or gradtape."""
    convert = gt.constant if xp is gt else np.asarray
    found = {name: convert(value) for name, value in given.items()}
    found |= {"xp": xp, "np": np, "n": n, "k": min(100, isqrt(n)), "total": xp.sum}
    return found | {"minus": lambda v: -v, "squared": lambda v: v * v}


def outputs(result: Any) -> list[Any]:
    """Return the differentiable tensors of a result."""
    parts = result if isinstance(result, (list, tuple)) else [result]
    return [part for part in parts if isinstance(part, gt.Tensor) and part.dtype.kind in "fc"]


def pull(code: Any, known: dict[str, Any], sources: list[Any]) -> Callable[[], Any] | None:
    """Return what computes the gradient of a call's results, None if there is none."""
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(sources)
        ys = outputs(eval(code, known))
    ones = [gt.ones_like(y) for y in ys]

    def run() -> Any:
        return tape.gradient(ys, sources, output_gradients=ones)

    return run if ys and any(g is not None for g in run()) else None


def best(runs: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Return the best time of each in microseconds, taking turns for about that long."""
    found = dict.fromkeys(runs, float("inf"))
    loops = {}
    for name, run in runs.items():
        run()
        start = time.process_time()
        run()
        loops[name] = max(1, int(seconds / 20 / max(time.process_time() - start, 1e-7)))
    end, rounds = time.process_time() + seconds, 0
    while time.process_time() < end or rounds < 3:
        rounds += 1
        for name, run in runs.items():
            start = time.process_time()
            for _ in range(loops[name]):
                run()
            found[name] = min(found[name], (time.process_time() - start) / loops[name] * 1e6)
    return found


def rows(n: int, only: str, seconds: float) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield each call with the times of NumPy, of its value and of its gradient."""
    given = arrays(n)
    theirs, ours = names(np, given, n), names(gt, given, n)
    for call in CALLS.split():
        if only not in call:
            continue
        code = compile(f"xp.{call}", call, "eval")
        used = re.findall(r"\b[a-z]\w*\b", call)
        sources = [ours[name] for name in dict.fromkeys(used) if _is_float(ours.get(name))]
        runs: dict[str, Callable[[], object]] = {
            "numpy": lambda code=code: eval(code, theirs),  # type: ignore[misc]
            "value": lambda code=code: eval(code, ours),  # type: ignore[misc]
        }
        gradient = pull(code, ours, sources) if sources else None
        if gradient is not None:
            runs["gradient"] = gradient
        yield call, best(runs, seconds)


def one_by_one(count: int) -> dict[str, float]:
    """Return the times of gradients of sums over rows that are taken out of a tensor in a loop."""
    x = gt.constant(np.random.default_rng(0).normal(size=(count, 50)))
    loops: dict[str, Callable[[Any], list[Any]]] = {
        "x[i]": lambda x: [x[i] for i in range(count)],
        "x[i:i+1]": lambda x: [x[i : i + 1] for i in range(count)],
        "for row in x": list,
        "take(x, i)": lambda x: [gt.take(x, i, axis=0) for i in range(count)],
        "unstack(x)": gt.unstack,
        "split(x, n)": lambda x: gt.split(x, count),
        "apply_along_axis": lambda x: [gt.apply_along_axis(gt.sum, 1, x)],
    }

    def gradient(rows: Callable[[Any], list[Any]]) -> Callable[[], object]:
        return lambda: gt.grad(lambda x: gt.sum(gt.stack([gt.sum(row) for row in rows(x)])))(x)

    return best({name: gradient(rows) for name, rows in loops.items()}, 2.0)


def _is_float(value: Any) -> bool:
    return isinstance(value, gt.Tensor) and value.dtype.kind in "fc"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="print every row")
    parser.add_argument("--only", default="", help="a word in the calls to measure")
    parser.add_argument("--size", type=int, default=100_000, help="the number of elements")
    parser.add_argument("--seconds", type=float, default=0.1, help="for each call")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| call | NumPy, µs | value ÷ NumPy | gradient ÷ value |")
    print("| --- | ---: | ---: | ---: |")
    x = np.ones(options.size)
    least = best({"copy": x.copy}, 0.1)["copy"]
    for call, times in rows(options.size, options.only, options.seconds):
        value, gradient = times["value"] / times["numpy"], times.get("gradient")
        back = None if gradient is None else gradient / max(times["value"], least)
        slow = (value > 5 and times["value"] > 50) or ((back or 0) > 5 and (gradient or 0) > 50)
        if options.all or slow:
            shown = "-" if back is None else f"{back:.1f}"
            print(f"| `{call}` | {times['numpy']:,.0f} | {value:.1f} | {shown} |", flush=True)
    if not options.only:
        print()
        print(table("gradient of 2,000 rows, taken one by one", one_by_one(2000), "unstack(x)"))


if __name__ == "__main__":
    main()
