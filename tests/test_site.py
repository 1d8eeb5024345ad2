"""The documentation site, as far as it can be checked without building it (make docs builds it)."""

from __future__ import annotations

import ast
import enum
import importlib
import re
import runpy
import sys
from collections import Counter
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import gradtape as gt
from gradtape.public import HOMES

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "site"
#: How classes say that members are not for their users: docs/make_api.py.
MARKS = {"_gradtape_internal", "_gradtape_hooks"}
NAV = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
PAGE = re.compile(r"^ *- (\S+\.md)$", re.MULTILINE)


def moved() -> dict[str, str]:
    """Return the pages that come from outside docs/, or have another name there."""
    text = (SITE / "hooks.py").read_text("utf-8")
    return dict(re.findall(r'^    "(\S+\.md)": "(\S+\.md)",$', text, re.MULTILINE))


def test_each_page_is_in_the_navigation_once() -> None:
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    pages = {path for path in pages if not path.startswith("docs/changes/")}  # not pages
    pages |= moved().keys()
    expected = {moved().get(path, path.removeprefix("docs/")) for path in pages}
    found = Counter(PAGE.findall(NAV))
    assert found.keys() == expected
    assert set(found.values()) == {1}


def test_the_navigation_shows_the_titles_of_pages() -> None:
    # a second name for a page would drift from its title
    named = re.findall(r"^ *- [^:\n]+: \S+\.md$", NAV, re.MULTILINE)
    assert not named


def test_no_page_hides_behind_the_title_of_its_section() -> None:
    # the theme makes a README.md, wherever it stands in a section, the link of the section's title
    assert "navigation.indexes" not in (ROOT / "mkdocs.yml").read_text("utf-8")


def test_the_configuration_names_files_that_a_clone_has() -> None:
    settings = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[0]
    settings = re.sub("#.*", "", settings)
    named = re.findall(r"\bdocs/[\w/.-]+", settings)
    named += [f"docs/{path}" for path in re.findall(r"\bassets/[\w.]+", settings)]
    assert {"docs/site/hooks.py", "docs/site/theme", "docs/assets/logo.svg"} <= set(named)
    for path in (ROOT / name for name in named):
        # a clone has no empty folders
        assert path.is_file() or any(x.is_file() for x in path.rglob("*")), path


def written(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return ``docs/site/written.py``, which needs no library of the site."""
    monkeypatch.syspath_prepend(str(SITE))
    monkeypatch.delitem(sys.modules, "written", raising=False)
    module = importlib.import_module("written")
    monkeypatch.delitem(sys.modules, "written")
    return module


def public() -> dict[str, str]:
    """Return what each public name is, by its path."""
    lines = (ROOT / "docs" / "api.txt").read_text("utf-8").splitlines()
    return {path: kind for path, _, kind in (line.partition(": ") for line in lines)}


def classes() -> Iterator[tuple[str, type]]:
    """Give the public classes, by path."""
    for path, kind in public().items():
        if kind.split()[0] == "class" and not kind.startswith("class of "):
            yield path, attrgetter(path.removeprefix("gradtape."))(gt)


def test_the_reference_describes_each_member_that_it_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # a member that nobody described is an internal that no class marks (docs/make_api.py), or a gap
    site, held, bare = written(monkeypatch), dict(classes()), []
    for path in public():
        around, _, name = path.rpartition(".")
        cls = held.get(around)
        if cls is None or (issubclass(cls, enum.Enum) and name in cls.__members__):
            continue
        if not (name in site.listed(cls) or site.said_of(cls, name)):
            bare.append(path)
    assert not bare


def test_a_class_is_found_where_it_is_written_whatever_was_asked_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import gradtape.compat.tensorflow as tf

    # modules of the compatibility layer have no file, and hold the classes that were asked for
    for cls in (tf.keras.callbacks.EarlyStopping, tf.keras.optimizers.schedules.ExponentialDecay):
        found = written(monkeypatch).written_at(cls, f"x.{cls.__name__}")
        assert found is not None
        assert found[0].startswith("training/")


def test_the_reference_shows_no_internals() -> None:
    shown = public().keys()
    for name in """
        GradientTape.asks_where GradientTape.record_joint GradientTape.wants_ops Module.saved_as
        layers.Dense.build layers.Dense.takes_one training.Adam.saved_as training.Adam.slots
    """.split():
        attrgetter(name)(gt)  # it is there
        assert f"gradtape.{name}" not in shown
    # what a subclass overrides stands once, with the class that calls it
    assert {"gradtape.training.Optimizer.slots", "gradtape.layers.Layer.build"} <= shown


def test_members_that_an_internal_class_defines_stand_with_the_public_one() -> None:
    names = "data.Dataset.from_tensor_slices data.Dataset.padded_batch GradientTape.watch"
    assert {f"gradtape.{name}" for name in names.split()} <= public().keys()


def test_classes_mark_members_that_exist() -> None:
    held = [cls for _, cls in classes()]
    marked = {base for cls in held for base in cls.__mro__ if vars(base).keys() & MARKS}
    assert len(marked) > 20
    for cls in marked:
        below = [x for x in held if issubclass(x, cls)]
        for mark in MARKS & vars(cls).keys():
            for name in set(vars(cls)[mark].split()) - {"*"}:
                assert any(name in dir(x) for x in below), f"{cls.__name__}.{mark} names {name}"


def test_each_name_under_the_package_has_a_topic() -> None:
    # its page of the reference; the hooks of MkDocs need griffe, which the suite may lack
    tree = ast.parse((SITE / "pages.py").read_text("utf-8"))
    values = [x.value for x in tree.body if isinstance(x, ast.Assign)]
    topics = next(ast.literal_eval(x) for x in values if isinstance(x, ast.Dict))
    starts = tuple(start for held in topics.values() for start in held)
    homes = {home for home in HOMES.values() if home != "." and ".plugins.ops." not in home}
    assert not [home for home in homes if not home.startswith(starts)]


def test_every_public_name_has_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("griffe", reason='pip install "gradtape[docs]"')
    site = written(monkeypatch)
    import pages  # type: ignore[import-not-found]
    import public_names  # type: ignore[import-not-found]

    root = public_names.build()
    found = {path for path, _ in public_names.every(root)}
    for path, item in public_names.every(root):
        if item.is_class:
            found |= {f"{path}.{name}" for name in item.members if name != "__init__"}
    # an attribute that the docstring of its class describes has no entry of its own
    listed = {f"{path}.{name}" for path, cls in classes() for name in site.listed(cls)}
    assert found | (listed & public_names.paths()) == public_names.paths()
    told = "".join(page.text() for page in pages.pages(root))
    listed = set(re.findall(r"^::: (\S+)$", told, re.MULTILINE))
    assert listed == {path for path, item in public_names.every(root) if not item.is_module}
    shown = {str(x) for _, item in public_names.every(root) if item.is_class for x in item.bases}
    assert "Layer" in shown
    assert not shown & {"Configured", "Decaying", "Slots", "Recorder", "RecordingTape", "Nested"}
    for name in ("pages", "public_names", "written"):
        sys.modules.pop(name, None)


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    broken = runpy.run_path(str(SITE / "check_links.py"))["broken"]
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#there">1</a><a href="#top">2</a><a href="c.png">3</a>'
        '<a href="#/view">0</a><a href="b.html#gone">4</a><a href="https://example.org/x">5</a><pre>[a][b]</pre>'
    )
    (tmp_path / "b.html").write_text('<p id="there">[<code>gt.sin</code>][gradtape.sin]</p>')
    followed, bad = broken(tmp_path)
    assert followed == 5
    assert bad == ["b.html: ][gradtape.sin]", "a.html: b.html#gone", "a.html: c.png"]


def test_the_home_page_has_the_first_paragraph_of_the_readme_in_its_band() -> None:
    first_paragraph = runpy.run_path(str(SITE / "texts.py"))["first_paragraph"]
    readme = (ROOT / "README.md").read_text("utf-8")
    lead, rest = first_paragraph(readme)
    assert lead.startswith("gradtape ")
    assert lead.split() + rest.split()[2:] == readme.split()[2:]
    assert "page.meta.lead" in (SITE / "theme" / "main.html").read_text("utf-8")
    for text in ("no title\n\nwords\n\n", "# title\n\n![picture](a.svg)\n\n"):
        with pytest.raises(ValueError, match=r"README\.md must begin"):
            first_paragraph(text)


def test_a_line_of_code_has_its_indentation_for_narrow_windows() -> None:
    with_indentation = runpy.run_path(str(SITE / "texts.py"))["with_indentation"]
    anchor = '<a id="__codelineno-0-1" name="a" href="#a"></a>'
    line = '<span id="__span-0-{}">' + anchor + "{}if x:</span>"
    made = with_indentation(line.format(1, "") + line.format(2, "    "))
    assert made == line.format(1, "") + line.format(2, "    ").replace(
        '-2">', '-2" style="--in:4ch">', 1
    )
    assert "var(--in" in (ROOT / "docs/assets/extra.css").read_text("utf-8")


def test_the_picture_of_the_readme_has_colours_for_the_dark() -> None:
    text = (ROOT / "docs/pictures/file.svg").read_text("utf-8")
    light, _, dark = text.partition("@media (prefers-color-scheme: dark)")
    # each class that has a colour in the light has one in the dark, and no shape has its own
    coloured = re.compile(r"^ *\.?(\w+) \{[^}]*#[0-9a-f]{6}", re.MULTILINE)
    assert set(coloured.findall(light)) == set(coloured.findall(dark.partition("</style>")[0]))
    assert "#" not in re.sub(r"url\(#\w+\)", "", dark.partition("</style>")[2])
