"""Pictures and pages: a model or a graph as SVG, and a file as one page of HTML."""

from __future__ import annotations

from .. import saving as saving
from ..core.extend import hookimpl

# whole, before its submodules: two threads that import some of them would wait for each other


@hookimpl(trylast=True)
def gradtape_services() -> dict[str, str]:
    """Provide the drawing of a graph, and the page of a file."""
    return {
        "reports.draw_graph": f"{__package__}.svg:svg",
        "reports.write_page": f"{__package__}.page:page",
    }
