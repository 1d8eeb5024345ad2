"""Write the table of hooks in docs/plugins.md, from their specifications and the registry.

python docs/make_hooks_table.py            # write the table
python docs/make_hooks_table.py --check    # exit with 1 if it is not up to date
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "plugins.md"
sys.path.insert(0, str(ROOT / "docs"))

from generated_pages import markdown_rows, write_or_check  # noqa: E402

from gradtape.core.registry import hookspecs  # noqa: E402
from gradtape.core.registry.kinds import KINDS  # noqa: E402
from gradtape.plugin import registry  # noqa: E402

#: The section of a page in docs/plugins that describes a hook.
PAGES = {
    "backends": "backends.md#a-backend",
    "collectives": "engines.md#an-engine",
    "commands": "commands.md#a-command",
    "converters": "commands.md#functions-in-converted-code",
    "datasets": "files.md#a-data-set",
    "diagnoses": "commands.md#a-section-of-gradtape-doctor",
    "executors": "executors.md#an-executor",
    "exporters": "files.md#an-exporter",
    "formats": "files.md#a-format-of-weights",
    "functions": "commands.md#another-librarys-functions",
    "gradients": "replacing.md#a-gradient-for-an-existing-op",
    "hints": "commands.md#hints-for-names-that-gradtape-lacks",
    "kernels": "replacing.md#a-kernel-for-one-backend",
    "late_ops": "commands.md#another-librarys-functions",
    "launchers": "engines.md#a-launcher",
    "lowerings": "executors.md#lowerings",
    "modules": "names.md#classes-that-files-may-name",
    "names": "names.md#names-in-texts",
    "namespaces": "names.md#ops-and-packages-under-gt",
    "ops": "ops.md#an-op-with-its-gradient",
    "samples": "ops.md#check-it-also-on-another-backend",
    "services": "names.md#services",
    "storages": "files.md#a-container-of-whole-files",
}
#: The attribute of ``PluginInfo`` that lists what a hook returned, if it has another name.
LISTED = {"gradients": "rules"}
MARKED = re.compile(r"(?<=<!-- hooks -->\n).*?(?=<!-- end of hooks -->)", re.DOTALL)


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Give the rows of the table: in the order of the specifications."""
    order = [name for name in vars(hookspecs) if name.startswith("gradtape_")]
    assert set(order) == {f"gradtape_{kind.hook}" for kind in KINDS}, "a hook has no kind"
    ours = [info for info in registry().plugins if info.distribution == "gradtape"]
    for kind in sorted(KINDS, key=lambda kind: order.index(f"gradtape_{kind.hook}")):
        summary = re.split(
            r"\.\n|\.$|: ``", inspect.getdoc(vars(hookspecs)[f"gradtape_{kind.hook}"]) or ""
        )[0]
        returns = " ".join(summary.removeprefix("Return ").split()).replace("``", "`")
        users = [x.name for x in ours if getattr(x, LISTED.get(kind.hook, kind.hook))]
        group = f"`gradtape`, `gradtape.{kind.hook}`" if kind.waits else "`gradtape`"
        link = f"[`gradtape_{kind.hook}`](plugins/{PAGES[kind.hook]})"
        yield link, returns, group, ", ".join(f"`{name}`" for name in sorted(users)) or "-"


def page() -> str:
    """Return the page with its table."""
    header = ("hook", "returns", "entry-point groups", "built-in plugins that use it")
    table = "\n".join(markdown_rows(header, rows()))
    text, count = MARKED.subn(lambda _: f"\n{table}\n\n", PAGE.read_text(encoding="utf-8"))
    assert count == 1
    return text


if __name__ == "__main__":
    sys.exit(write_or_check({PAGE: page()}, sys.argv[1:]))
