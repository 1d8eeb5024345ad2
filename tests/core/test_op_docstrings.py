"""What Python's own tools tell of an op: its docstring, its signature, its help page."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys
from itertools import pairwise

import gradtape as gt
from gradtape.core.extend import BinaryOp, Op, UnaryOp


def sections(text):
    lines = text.splitlines()
    return [above for above, line in pairwise(lines) if line and not line.strip("-")]


def body(text, section):
    return text.partition(f"{section}\n{'-' * len(section)}\n")[2].partition("\n\n")[0]


# -- classes and ops -------------------------------------------------------------------------------


def test_a_class_of_ops_has_its_own_text() -> None:
    assert Op.__doc__.startswith("A differentiable primitive.")
    assert UnaryOp.__doc__.startswith("An op of one array without parameters")
    assert BinaryOp.__doc__.startswith("An op of two arrays without parameters")
    assert list(inspect.signature(Op).parameters)[:3] == ["name", "kernel", "inputs"]


def test_a_class_without_a_text_inherits_one() -> None:
    class Mine(UnaryOp):
        __slots__ = ()

    assert Mine.__doc__ is None
    assert inspect.getdoc(Mine) == inspect.getdoc(UnaryOp)
    mine = Mine("mine", "exp", inputs=("x",), doc="Return something of ``x``.")
    assert mine.__doc__.startswith("Return something of ``x``.\n\nParameters\n")


def test_help_is_about_the_op() -> None:
    text = pydoc.render_doc(gt.nn.relu, renderer=pydoc.plaintext)
    assert "Return ``max(x, 0)``" in text
    assert "An op of one array" not in text


# -- docstrings ------------------------------------------------------------------------------------


def test_sections_are_made_of_the_record() -> None:
    text = gt.divide.__doc__
    assert sections(text)[:3] == ["Parameters", "Returns", "Raises"]
    assert body(text, "Parameters").startswith("x, y\n    Tensors, arrays or numbers; their shapes")
    assert body(text, "Returns") == (
        "A tensor of the broadcast shape and the promoted dtype; integers give floats."
    )
    assert body(text, "Raises").splitlines()[::2] == ["TypeError", "ValueError"]


def test_dtypes_are_told_in_words() -> None:
    returns = {op.name: body(op.__doc__, "Returns") for op in (gt.abs, gt.isnan, gt.bitwise_count)}
    assert returns == {
        "abs": "A tensor of the shape of ``x`` and of its dtype; complex numbers give real ones.",
        "isnan": "A boolean tensor of the shape of ``x``.",
        "bitwise_count": "A tensor of the shape of ``x`` and of dtype ``uint8``.",
    }
    assert "is complex, or not a tensor" in body(gt.nn.relu.__doc__, "Raises")
    assert "is floating, complex, or not a tensor" in body(gt.bitwise_and.__doc__, "Raises")


def test_sections_that_are_given_stay_and_are_ordered() -> None:
    op = Op(
        "mine",
        lambda xp, x, *, axis=0, rate: x,
        doc="""Return ``x``.

        A paragraph.

        Examples
        --------
        >>> 1 + 1
        2

        Returns
        -------
        What I say.

        Own
        ---
        Anything.
        """,
    )
    text = op.__doc__
    assert sections(text) == ["Parameters", "Returns", "Raises", "Examples", "Own"]
    assert text.startswith("Return ``x``.\n\nA paragraph.\n\nParameters\n")
    assert body(text, "Returns") == "What I say."
    assert body(text, "Parameters") == (
        "x\n    A tensor or an array.\naxis\n    A setting, by default ``0``.\nrate\n    A setting."
    )


def test_an_op_without_a_text_has_a_docstring() -> None:
    def refuse(*specs):
        raise RuntimeError("never")

    op = Op("mine", "exp", inputs=("x",), infer=refuse, batch="elementwise")
    assert op.__doc__.startswith("Run the op 'mine'.\n\nParameters\n")
    assert body(op.__doc__, "Returns") == "A tensor of the shape of ``x``."


def test_docstrings_are_made_when_asked_for() -> None:
    code = (
        "import sys, gradtape as gt; gt.add(gt.sin(1.0), 2.0);"
        "made = lambda: any(name.endswith('.ops.docstrings') for name in sys.modules);"
        "assert not made(); gt.add.__doc__; assert made()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -- signatures ------------------------------------------------------------------------------------


def test_arrays_are_positional_and_parameters_keywords() -> None:
    ops = gt.registry().ops
    assert str(inspect.signature(ops["round"])) == "(x, /, *, decimals=0)"
    assert str(inspect.signature(ops["concatenate"])) == "(*arrays, axis=0)"
    assert str(inspect.signature(gt.power)) == "(x, y, /)"


def test_quick_ops_take_a_label() -> None:
    for op, arrays in ((gt.sin, ["x"]), (gt.add, ["x", "y"])):
        *given, label = inspect.signature(op).parameters.values()
        assert [p.name for p in given] == arrays
        assert {p.kind for p in given} == {inspect.Parameter.POSITIONAL_ONLY}
        assert (label.name, label.default) == ("name", None)


def test_every_op_tells_of_each_of_its_parameters() -> None:
    for op in gt.registry().ops.values():
        told = body(op.__doc__, "Parameters")
        missing = [name for name in inspect.signature(op).parameters if name not in told]
        assert not missing, (op.name, missing)
