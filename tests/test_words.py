"""The house's style, as far as patterns can check it: see "Write" in CONTRIBUTING.md.

Pages are checked as a whole; in the code, docstrings, comments and messages are.
``python tests/test_words.py [PATH ...]`` lists what it finds in other files.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Sentences with more words than this are split. A piece of code counts as one word.
LONGEST = 40
#: What no longer is, or never was, the English of technical writing, and what to write.
WORDS = {
    r"in the place of": "instead of",
    r"of (yours|ours|theirs)|one's own|as one likes": "your own",
    r"(is|are|was|were|be|being) told": "receives, reports, says",
    r"tells? (of|all|about|itself|apart|what|which|whether|how|by)|told apart": "reports, says",
    r"([,;:.]|and|or) else(?! [a-z]+ (is|are|was) )": "otherwise",
    r"(?<!divides the )(derivatives?|gradients?|slopes?|differentiated?|Jacobians?|Hessians?)"
    r"( \w+){0,3}(?<!ed) by "
    r"(the|its|an?|all|any|each|every|several|real|inputs|weights)": "with respect to",
    r"closed over|closes over": "captured",
    r"(left|leaves?|leaving) open|open (sizes?|shapes?|axes)": "unknown, unspecified",
    r"on the way( back)?|(the|a|no) way back|ways? forward": "intermediate; the backward pass",
    r"heed(s|ed|ing)?|lest|naught|kin|whence|thence|thereof|therein|whereof|shall": "(archaic)",
    r"for ever": "forever, always",
    r"([.;,:]|and) nor|nor (do|does|are|is|need|can|may|will|did)": "and not; it does not either",
    r"(?<!there )(is|are|was) no (number|class|letter|tensor|array|module|variable|function|dtype|"
    r"name|op|file|integer|parameter|graph|size|matrix|value|list)s?": "is not a ...",
    r"beside": "next to, with, besides",
    r"but for": "except for",
    r"(nothing|none|nobody|no one) but": "only",
    r"(what|which|that|whoever|they|it|who) (is|are) to": "should, must",
    r"whose \w+ (is|are) to": "which should",
    r"without (a word|words|more being)|in (plain )?words": "silently; with an error message",
    r"(is|are) held (to|against)": "is compared with",
    r"stands? (in|beside|there|at|here)": "is in",
    r"goes on|go on from": "continues",
    r"whoever": "users who; anyone who",
    r"strangers?": "untrusted",
    r", for (it|they|there|no \w+|that|this|these|what) ": "because",
    r"taken for": "treated as",
    r"be had": "be computed, is available",
    r"(tapes?|it|they|who) (is|are|was|were) asked": "you call ...",
    r"what (it|they|one|he|the \w+|a \w+) (is|are|was|were|has been) given": "its arguments",
    r"(is|are|was|were) wanted": "you need",
    r"and the like": "and similar",
    r"hand(s|ed)? on": "passes on",
    r"Keras' ": "Keras's",
}
#: Sentences that put something before their subject.
INVERTED = re.compile(
    r"(Of (an?|the|its|what|these|those|several|such|two|all|each|one|equal)|Nor"
    r"|So (also|is|are|does|do) \w+|Not so|Thus far) "
)
#: Headings that hide what they head.
HEADING = re.compile(r"(Of|On|By|Doubt|None|Zero|Saved|Rest|Beside|Else)\b|.*\?$")
PATTERNS = {
    re.compile(rf"(?<![\w-])({words})(?![\w-])" if words[-1] != " " else rf"\b({words})"): instead
    for words, instead in WORDS.items()
}

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("*/README.md")),
    *(p for p in sorted((ROOT / "docs").rglob("*.md")) if p.parent.name != "changes"),
]
FOLDERS = [
    folder
    for folder in sorted(ROOT.iterdir())
    if folder.is_dir() and not folder.name.startswith((".", "build", "docs", "tests"))
]
MODULES = [*sorted(ROOT.glob("*.py")), *(p for f in FOLDERS for p in sorted(f.rglob("*.py")))]

FENCE = re.compile(r"^( *)(```+).*?^\1\2 *$", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"<!-- not checked -->.*?<!-- checked -->|<!--.*?-->", re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
CODE = re.compile(r"(:\w+:)?(``.+?``|`[^`]*`)", re.DOTALL)
END = re.compile(r"(?<=[.!?])[)*\"]*\s+|(?<=[:;])\s+")
BEGIN = re.compile(r" *([*-]|\d+\.) |#|\||    ")


def named(path: Path) -> str:
    """Return a path as tests and messages show it."""
    return path.relative_to(ROOT).as_posix()


def sentences(text: str) -> Iterator[str]:
    """Give the sentences of a paragraph, with the word "code" in place of each piece of code."""
    text = LINK.sub(r"\1", CODE.sub("code", " ".join(text.split())))
    yield from END.split(text)


def units_of_page(text: str) -> Iterator[tuple[int, str]]:
    """Give the headings, paragraphs, list items and table rows of a page, with their lines."""
    for ignored in (FENCE, COMMENT):
        text = ignored.sub(lambda found: "\n" * found[0].count("\n"), text)
    unit, start = "", 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if unit and (not line.strip() or BEGIN.match(line)):
            yield start, unit
            unit = ""
        start = start if unit else number
        unit = f"{unit} {line.strip()}".strip()
        if line.startswith(("#", "|")):
            yield start, unit
            unit = ""


def units_of_module(text: str) -> Iterator[tuple[int, str]]:
    """Give the paragraphs of a module's docstrings, and the messages that it raises or warns of."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            documented = ast.get_docstring(node)
            if documented is not None:
                first = node.body[0].lineno
                yield from ((first + n, unit) for n, unit in units_of_docstring(documented))
        elif isinstance(node, ast.keyword) and node.arg in ("doc", "help"):
            if (said := message(node.value)) is not None:
                documented = inspect.cleandoc(said)
                yield from ((node.lineno + n, unit) for n, unit in units_of_docstring(documented))
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from ((node.lineno, said) for said in map(message, node.exc.args) if said)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("warn"):
            yield from ((node.lineno, said) for said in map(message, node.args) if said)


def units_of_comments(text: str) -> Iterator[tuple[int, str]]:
    """Give a module's comments; those on consecutive lines are one."""
    unit, start, last = "", 0, 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        (line, column), said = token.start, token.string.lstrip("#: ")
        follows_code = bool(token.line[:column].strip())
        if unit and (line > last + 1 or follows_code):
            yield start, unit
            unit = ""
        start, last = start if unit else line, line
        unit = f"{unit} {said}".strip()
        if follows_code:
            yield start, unit
            unit = ""
    if unit:
        yield start, unit


def units_of_docstring(text: str) -> Iterator[tuple[int, str]]:
    """Give the paragraphs of a docstring, without its examples, formulas and section titles."""
    at = 0
    for block in re.split(r"(\n\s*\n)", text):
        lines = block.strip("\n").split("\n")
        indented = [line for line in lines if line.startswith("    ")]
        if set(lines[-1].strip()) == {"-"} or not block.strip() or ">>>" in block:
            pass
        elif len(lines) > 1 and set(lines[1].strip()) == {"-"}:
            yield from parameters(at + 2, lines[2:])
        elif indented and not lines[0].startswith(" ") and len(indented) < len(lines):
            yield from parameters(at, lines)
        elif not lines[0].startswith((".. ", "    ")) and not lines[0].endswith("::"):
            yield at, " ".join(lines)
        at += block.count("\n")


def parameters(at: int, lines: list[str]) -> Iterator[tuple[int, str]]:
    """Give the descriptions in a section such as Parameters."""
    unit, start = "", at
    for number, line in enumerate([*lines, ""]):
        if line.startswith("    "):
            start = start if unit else at + number
            unit = f"{unit} {line.strip()}".strip()
        elif unit:
            yield start, unit
            unit = ""


def message(node: ast.expr) -> str | None:
    """Return the text of a message, with "code" in place of what is formatted into it."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = (x.value if isinstance(x, ast.Constant) else "code" for x in node.values)
        return "".join(map(str, parts))
    return None


def faults_of(unit: str) -> Iterator[str]:
    """Say what is wrong with a piece of prose."""
    if unit.startswith("#"):
        heading = unit.lstrip("# ")
        if HEADING.match(heading):
            yield f"a heading that does not say what is below it: {heading}"
        return
    for sentence in sentences(re.sub(r"^([*-]|\d+\.) +", "", unit)):
        for pattern, instead in PATTERNS.items():
            if found := pattern.search(sentence):
                yield f"{found[0]!r} ({instead}): {sentence}"
        if INVERTED.match(sentence):
            yield f"the subject does not come first: {sentence}"
        words = re.findall(r"[\w'-]+", re.sub(r"(code,? ){3,}", "code ", sentence))
        if len(words) > LONGEST and not unit.startswith("|"):
            yield f"{len(words)} words: {sentence}"


def faults(path: Path) -> list[str]:
    """Return what is wrong with a page, or with a module's docstrings, comments and messages."""
    kinds = [units_of_page] if path.suffix == ".md" else [units_of_module, units_of_comments]
    text = path.read_text(encoding="utf-8")
    return [
        f"{named(path)}:{line}: {fault}"
        for units in kinds
        for line, unit in units(text)
        for fault in faults_of(unit)
    ]


@pytest.mark.parametrize("path", [*PAGES, *MODULES], ids=named)
def test_a_file_is_written_in_the_house_style(path: Path) -> None:
    assert not (found := faults(path)), "\n".join(["see Write in CONTRIBUTING.md", *found])


@pytest.mark.parametrize(
    ("unit", "fault"),
    [
        ("The mean of a batch, or else the moving one.", "otherwise"),
        ("The derivative of any result by any input.", "with respect to"),
        ("It gets a list in the place of a tuple.", "instead of"),
        ("Tapes are told of ops. Of an op the name counts.", "the subject does not come first"),
        ("## Of an op", "a heading"),
        ("It is a sentence " + "that goes and " * 20 + "ends.", "words"),
    ],
)
def test_faults_are_found(unit: str, fault: str) -> None:
    assert fault in "\n".join(faults_of(unit))


def test_docstrings_and_messages_are_found() -> None:
    text = '''
def f(x):
    """Return x.

    Parameters
    ----------
    x
        The gradient by the input.
    """
    raise ValueError(f"{x} is told else")
'''
    assert {unit for _, unit in units_of_module(text)} == {
        "Return x.",
        "The gradient by the input.",
        "code is told else",
    }


def test_comments_are_found() -> None:
    text = "x = 1  # of x\n# first\n# second\ny = 2  # of y\n\n#: last"
    found = list(units_of_comments(text))
    assert found == [(1, "of x"), (2, "first second"), (4, "of y"), (6, "last")]


#: Words that explain nothing in a name, and what a name may say instead.
NAMES = {
    "told tell tells telling say says said heard greeted": "report, describe, text, message",
    "apart aside asides parted": "separate, distinct, difference",
    "among beside besides": "on the device of, with",
    "meant wish wary unsure blunt perhaps": "the condition, as is_... or has_...",
    "course everything gone": "what it contains, or ended",
    "owes owed heed lest whence thence naught strangers riddle whom theirs": "(archaic)",
}
#: Names with such a word that stay, and why. Public names stay too, as programs use them.
STAY = {
    "_apart": "the hub calls it by the name of its timer",
    "theirs": "the opposite of ours: names of another library",
    "told": "what a hint says at the end of a message, for modules that import hints",
    "whence": "Python's name for a parameter of seek",
}
PUBLIC = frozenset(re.findall(r"\w+", (ROOT / "docs" / "api.txt").read_text(encoding="utf-8")))


def names_in(path: Path) -> Iterator[tuple[int, str]]:
    """Give the names of a module, of its functions and classes, and of their parameters."""
    yield 1, path.stem
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def unclear(name: str) -> str | None:
    """Return what a name may say instead, if one of its words explains nothing."""
    words = {*re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")}
    if name in STAY or name in PUBLIC:
        return None
    return next((instead for known, instead in NAMES.items() if words & {*known.split()}), None)


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_names_are_terms(path: Path) -> None:
    found = [(line, name, unclear(name)) for line, name in names_in(path)]
    wrong = [f"{named(path)}:{line}: {name} ({hint})" for line, name, hint in found if hint]
    assert not wrong, "\n".join(["see Words in CONTRIBUTING.md", *wrong])


def test_unclear_names_are_found() -> None:
    assert all(map(unclear, ("TellAll", "rows_beside", "size_apart", "_is_meant")))
    assert not any(map(unclear, ("retell", "rows_on_device_of", "size_difference", "apartment")))


if __name__ == "__main__":
    print(*(fault for name in sys.argv[1:] for fault in faults(Path(name).resolve())), sep="\n")
