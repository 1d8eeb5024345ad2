"""What packages below this one use of it; each is imported when it is first used."""

from __future__ import annotations

from ..core.extend import hookimpl

_PLACES = {
    "Keeper": "checkpoints:Keeper",
    "check_format": "records.formats:check_format",
    "load_weights": "weights.load:load_weights",
    "pickle_concrete_function": "pickling:concrete_function",
    "pickle_function": "pickling:function",
    "pickle_tensor": "pickling:tensor",
    "pickle_variable": "pickling:variable",
    "save": "writing.save:save",
    "save_weights": "weights.save:save_weights",
    "under_any_name": "records.formats:under_any_name",
    "writer_of": "records.formats:writer_of",
}


@hookimpl(trylast=True)
def gradtape_services() -> dict[str, str]:
    """Provide pickling, checkpoints and weights."""
    return {f"saving.{name}": f"{__package__}.{place}" for name, place in _PLACES.items()}
