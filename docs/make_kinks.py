"""Write docs/kinks.md, the table of kinks, infinities and zeros, from tests/fuzz/kinks.

python docs/make_kinks.py               # measure ours, and write the page
python docs/make_kinks.py --check       # exit with 1 if it is not up to date
python docs/make_kinks.py --peer jax    # measure JAX (or tensorflow) into docs/kinks.json

A peer is measured in whatever environment has it; it needs no gradtape.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from fuzz.kinks import KINKS
from generated_pages import write_or_check

ROOT = Path(__file__).resolve().parents[1]
PAGE, DATA = ROOT / "docs" / "kinks.md", ROOT / "docs" / "kinks.json"
PEERS = {"jax": "JAX", "tensorflow": "TensorFlow"}
HEAD = """# Kinks, infinities and zeros

Where a function has no derivative, or only a limit of derivatives, a library has to choose. Each
row shows the value, the gradient, and the gradient of the gradient's sum at such a point.
gradtape's are measured when this page is generated and in every run of the test suite. Those of JAX
{jax} and TensorFlow {tensorflow} are stored measurements (`docs/kinks.json`). The column *right* is
a number, an interval if every slope in it is a subgradient, or "-" if there is none. Everything is
`float64`. `python docs/make_kinks.py` generates the page from
[tests/fuzz/kinks](../tests/fuzz/kinks).

A cell reads *value; gradient; second*. **On purpose** marks where gradtape intentionally differs
from *right*, with the reason. A gradient rule sees one op at a time. If several ops meet at a kink,
the chain rule of their conventions need not give a subgradient of the whole.
"""


def ours() -> list[list[Any]]:
    """Return value and gradients of every row in gradtape."""
    import gradtape as gt

    def measured(call: str, at: Any) -> list[Any]:
        run = eval(f"lambda x: {call}", {"gt": gt, "np": np})
        x = gt.constant(np.array(at, "float64"))
        with gt.GradientTape() as second:
            second.watch(x)
            with gt.GradientTape() as first:
                first.watch(x)
                y = run(x)
            slope = first.gradient(y, x, unconnected_gradients="zero")
        curve = second.gradient(slope, x, unconnected_gradients="zero")
        return [y.tolist(), slope.tolist(), curve.tolist()]

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [measured(kink.call, kink.at) for kink in KINKS]


def _of_jax() -> list[list[Any] | None]:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def measured(kink: Any) -> list[Any] | None:
        if not kink.jax:
            return None
        run = eval(f"lambda x: {kink.jax}", {"jax": jax, "jnp": jnp})
        x = jnp.array(kink.at, "float64")
        slope = jax.grad(run)
        parts = [run(x), slope(x), jax.grad(lambda x: jnp.sum(slope(x)))(x)]
        return [np.asarray(part).tolist() for part in parts]

    return [measured(kink) for kink in KINKS]


def _of_tensorflow() -> list[list[Any] | None]:
    import tensorflow as tf

    def measured(kink: Any) -> list[Any] | None:
        if not kink.tensorflow:
            return None
        run = eval(f"lambda x: {kink.tensorflow}", {"tf": tf, "np": np})
        x = tf.constant(np.array(kink.at, "float64"))
        found: list[Any] = [None, None, None]
        # an op without a gradient of its gradient, and one that refuses the point, raise
        with suppress(LookupError, tf.errors.InvalidArgumentError):
            with tf.GradientTape() as second:
                second.watch(x)
                with tf.GradientTape() as first:
                    first.watch(x)
                    y = run(x)
                found[0] = np.asarray(y).tolist()
                slope = first.gradient(y, x, unconnected_gradients="zero")
                found[1] = np.asarray(slope).tolist()
            curve = second.gradient(slope, x, unconnected_gradients="zero")
            found[2] = np.asarray(curve).tolist()
        return found

    return [measured(kink) for kink in KINKS]


def measure(peer: str) -> None:
    """Measure a peer and put its column into the data, by call and point."""
    found = {"jax": _of_jax, "tensorflow": _of_tensorflow}[peer]()
    version = __import__(peer).__version__
    data = json.loads(DATA.read_text()) if DATA.exists() else {}
    rows = {_key(kink): row for kink, row in zip(KINKS, found, strict=True) if row is not None}
    data[peer] = {"version": version, "rows": rows}
    rest = [f"{json.dumps(name)}: {_lines(column)}" for name, column in sorted(data.items())]
    DATA.write_text("{\n" + ",\n".join(rest) + "\n}\n")


def _lines(column: dict[str, Any]) -> str:
    rows = ",\n".join(f"  {json.dumps(k)}: {json.dumps(row)}" for k, row in column["rows"].items())
    return f'{{"version": {json.dumps(column["version"])}, "rows": {{\n{rows}}}}}'


def _key(kink: Any) -> str:
    return f"{kink.call} at {kink.at}"


def page() -> str:
    """Return the text of the page."""
    data = json.loads(DATA.read_text())
    versions = {peer: data[peer]["version"] for peer in PEERS}
    lines = [HEAD.format(**versions)]
    lines.append(f"| call | at | gradtape | {' | '.join(PEERS.values())} | right | reason |")
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for kink, row in zip(KINKS, ours(), strict=True):
        peers = [data[peer]["rows"].get(_key(kink)) for peer in PEERS]
        reason = ("**On purpose**: " if kink.on_purpose else "") + kink.reason
        right = f"{_text(kink.first)}; {_text(kink.second)}"
        cells = [f"`{kink.call}`", _text(kink.at), *map(_cell, [row, *peers]), right, reason]
        lines.append("| " + " | ".join(cells).replace("|x|", "abs(x)") + " |")
    return "\n".join(lines) + "\n"


def _cell(row: list[Any] | None) -> str:
    return "" if row is None else "; ".join(map(_text, row))


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, (int, float)):
        return f"{value:.4g}".replace("inf", "∞") if not math.isnan(value) else "nan"
    return f"{_text(value.low)} to {_text(value.high)}"


def main(arguments: list[str]) -> int:
    """Do what the command line says; return the exit code."""
    if arguments[:1] == ["--peer"]:
        measure(arguments[1])
        return 0
    return write_or_check({PAGE: page()}, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
