"""Pictures and pages of files, as a plugin: ``Inspection.svg`` and ``.html`` use them."""

from __future__ import annotations

from ..core.extend import hookimpl


@hookimpl(trylast=True)
def gradtape_services() -> dict[str, str]:
    """Provide the drawing of a graph, and the page of a file."""
    return {
        "reports.draw_graph": f"{__package__}.svg:svg",
        "reports.write_page": f"{__package__}.page:page",
    }
