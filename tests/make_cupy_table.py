"""Write ``cupy_table.json``: what CuPy has, with signatures, for machines without it.

Run it where CuPy can be imported, which needs no GPU: ``python tests/make_cupy_table.py``.
"""

from __future__ import annotations

import inspect
import json
import re
import types
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("cupy_table.json")


def table() -> dict[str, Any]:
    """Return CuPy's version and names: with signatures, and with the loops of ufuncs."""
    import cupy
    import cupyx
    import cupyx.scipy.special

    rooms = {
        "": cupy,
        "lib.stride_tricks.": cupy.lib.stride_tricks,
        "linalg.": cupy.linalg,
        "fft.": cupy.fft,
        "ndarray.": cupy.ndarray,
        "cupyx.": cupyx,
        "scipy.special.": cupyx.scipy.special,
    }
    names = {}
    for prefix, room in rooms.items():
        for name in sorted(dir(room)):
            value = getattr(room, name)
            if not name.startswith("_") and not isinstance(value, types.ModuleType):
                names[prefix + name] = _described(value)
    return {"version": cupy.__version__, "names": names}


def _described(value: Any) -> list[str]:
    """Return a function's signature, and a ufunc's loops; nothing for other values."""
    if isinstance(value, type) or not callable(value):
        return []
    text = value.__doc__ or ""
    if hasattr(value, "types") and hasattr(value, "nin"):
        loops = " ".join(value.types)
        taken = "".join(f"x{i}, " for i in range(value.nin))
        outs = ", ".join(
            [f"out{i}=None" for i in range(value.nout)] if value.nout > 1 else ["out=None"]
        )
        return [f"({taken}/, {outs}, *, casting=None, dtype=None)", loops]
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        found = re.match(r"[\w.]+\((.*?)\)\s*(->|$)", text.strip().split("\n")[0])
        if found is None:
            return ["(*args, **kwargs)"]
        # Cython writes C's types before names
        parts = [x.split("=") for x in found[1].split(", ") if x]
        named = [x[0].split()[-1] + "=None" * (len(x) > 1) for x in parts]
        return [f"({', '.join(named)})"]
    plain = [
        parameter.replace(
            annotation=inspect.Parameter.empty,
            default=parameter.default if parameter.default is parameter.empty else None,
        )
        for parameter in signature.parameters.values()
    ]
    return [str(inspect.Signature(plain))]


def text() -> str:
    """Return the file's text, one name a line."""
    found = table()
    lines = [f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in found["names"].items()]
    head = json.dumps(found["version"])
    return f'{{\n  "version": {head},\n  "names": {{\n' + ",\n".join(lines) + "\n  }\n}\n"


if __name__ == "__main__":
    PATH.write_text(text())
