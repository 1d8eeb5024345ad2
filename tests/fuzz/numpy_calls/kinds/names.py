"""The kind of a parameter, by its name."""

from __future__ import annotations

from fuzz.numpy_calls.kinds import arrays, matrices, places
from fuzz.numpy_calls.kinds.base import KINDS, Kind, words

__all__ = ["BY_NAME", "MODULES", "OTHERS"]

#: The modules that fill the table of kinds.
MODULES = (arrays, matrices, places)

#: The kind of a parameter with this name, unless the table of functions has another.
BY_NAME: dict[str, Kind] = {
    **dict.fromkeys("x a m v p z obj".split(), KINDS["array"]),
    **dict.fromkeys("y b x2 values".split(), KINDS["like"]),
    **dict.fromkeys(
        "keepdims copy descending equal_nan rowvar bias density returned include_initial "
        "full_matrices hermitian compute_uv upper increasing endpoint return_index return_inverse "
        "return_counts return_indices assume_unique invert deg sparse retstep".split(),
        KINDS["flag"],
    ),
    "N": KINDS["count"],
    "M": KINDS["count"],
    "a1": KINDS["vector"],
    "a2": KINDS["vector"],
    "arrays": KINDS["arrays"],
    "axes": KINDS["axes"],
    "axis": KINDS["axes"],
    "axis1": KINDS["axis"],
    "axis2": KINDS["other_axis"],
    "device": KINDS["device"],
    "casting": words("safe", "same_kind", "unsafe", "no", "equiv"),
    "mean": KINDS["mean"],
    "correction": KINDS["ddof"],
    "ddof": KINDS["ddof"],
    "decimals": KINDS["decimals"],
    "dtype": KINDS["dtype"],
    "initial": KINDS["scalar"],
    "k": KINDS["small"],
    "kind": words("quicksort", "stable", "mergesort", "heapsort"),
    "max": KINDS["bound"],
    "min": KINDS["bound"],
    "n": KINDS["positive"],
    "norm": words("ortho", "forward", "backward"),
    "num": KINDS["count"],
    "offset": KINDS["small"],
    "order": words("C", "F", "A", "K"),
    "rtol": KINDS["tolerance"],
    "atol": KINDS["tolerance"],
    "shape": KINDS["shape"],
    "stable": KINDS["flag"],
    "where": KINDS["mask"],
    "x1": KINDS["array"],
}

#: Kinds of arguments that NumPy's functions have and ours lack.
OTHERS: dict[str, Kind] = {
    **{name: BY_NAME[name] for name in "casting copy dtype stable where".split()},
    "order": lambda d: d.pick("CFAK"),
    "kind": lambda d: d.pick(("quicksort", "stable", "mergesort", "heapsort")),
    "like": KINDS["no_device"],
    "out": KINDS["out"],
    "overwrite_input": KINDS["flag"],
    "retstep": KINDS["flag"],
    "subok": KINDS["flag"],
}
