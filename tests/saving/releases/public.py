"""What a version makes public, as text, and what of it a later version lacks."""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gradtape as gt
from gradtape.cli import _VARIABLES, commands
from gradtape.core.registry import hookspecs

API = Path(__file__).parents[3] / "docs" / "api.txt"
SAME = "the same as "


class Call(NamedTuple):
    """How a function is called: names by position, and defaults by name (None: required)."""

    positions: list[str]
    defaults: dict[str, str | None]
    takes_any: bool
    more: bool = False  # names that a TypedDict lists
    takes_names: bool = False  # of any name
    unnamed: int = 0  # how many without a name are required


def call(told: str) -> Call | None:
    """Return how to call what a line of the API describes; None if nobody calls it."""
    signature = told.partition(" ")[2].replace("<factory>", "...")
    if not signature.startswith("("):
        return None
    try:
        (function,) = ast.parse(f"def f{signature}: ...").body
    except SyntaxError:  # the members of an enumeration
        return None
    assert isinstance(function, ast.FunctionDef)
    given = function.args
    unnamed = [x.arg for x in given.posonlyargs]
    positional = [x.arg for x in (*given.posonlyargs, *given.args)]
    texts: list[str | None] = [None] * (len(positional) - len(given.defaults))
    texts += map(ast.unparse, given.defaults)
    found = dict(zip(positional, texts, strict=True))
    for x, value in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        found[x.arg] = value and ast.unparse(value)
    if positional[:1] in (["self"], ["cls"]):
        del found[positional.pop(0)]
    named = {x: text for x, text in found.items() if x not in unnamed and x[0] != "_"}
    places = ["" if x in unnamed else x for x in positional]
    others = ast.unparse(given.kwarg) if given.kwarg else ": Never"
    more = "Unpack[" in others
    takes_names = not more and not others.endswith(": Never")
    required = sum(text is None for x, text in found.items() if x in unnamed)
    return Call(places, named, given.vararg is not None, more, takes_names, required)


def actions() -> Iterator[tuple[str, argparse.Action]]:
    """Give the commands of gradtape, each with what it can be given."""
    owner = gt.registry().owner

    def walk(name: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
        for action in parser._actions:
            if not isinstance(action, argparse._SubParsersAction):
                yield name, action
                continue
            for word, below in action.choices.items():
                if name != "gradtape" or owner("command", word).distribution == "gradtape":
                    yield from walk(f"{name} {word}", below)

    yield from walk("gradtape", commands.parser())


def options() -> dict[str, list[str]]:
    """Return the commands of gradtape, each with its options."""
    found: dict[str, list[str]] = {"gradtape": [*_VARIABLES]}
    for name, action in actions():
        found.setdefault(name, []).extend(action.option_strings)
    return found


def arguments() -> dict[str, dict[str, Any]]:
    """Return what each command takes: by option, or by position, how many values, and which."""
    found: dict[str, dict[str, Any]] = {}
    for name, action in actions():
        taken = found.setdefault(name, {})
        unnamed = sum(key.startswith("argument ") for key in taken)
        key = action.option_strings[-1] if action.option_strings else f"argument {unnamed + 1}"
        taken[key] = {
            "values": str(action.nargs),
            "required": action.required,
            "default": str(action.default),
            "choices": sorted(map(str, action.choices or ())),
        }
    return found


def public(api: str = API.read_text("utf-8")) -> dict[str, Any]:
    """Return names with what they are, commands, ops in files, hooks, and the plugin interface."""
    lines = (line.partition(": ") for line in api.splitlines())
    names = {name: told for name, _, told in lines if name.startswith("gradtape.")}
    found = gt.registry()
    ops = [name for name in found.ops if found.owner("op", name).distribution == "gradtape"]
    hooks = {
        name: list(inspect.signature(getattr(hookspecs, name)).parameters)
        for name in hookspecs.HOOKS
    }
    return {
        "names": names,
        "commands": options(),
        "arguments": arguments(),
        "ops": sorted(ops),
        "hooks": hooks,
        "plugin": list(gt.plugin.API),
    }


def words(text: str) -> set[str]:
    """Return the words that a text has as code, names without that of the package."""
    found = (word for span in re.findall(r"`([^`]+)`", text) for word in span.split())
    return {re.sub(r"^(gt|gradtape)\.", "", word).partition("(")[0] for word in found}


def gone(old: dict[str, Any], new: dict[str, Any], removed: str) -> list[str]:
    """Tell what a version lacks of an earlier one without a word under *Removed*."""
    told, lacking = words(removed), []
    for name in old["names"]:
        if name.removeprefix("gradtape.") not in told:
            lacking += [f"{name}{what}" for what in _lost(name, old["names"], new["names"])]
    for name, given in old["commands"].items():
        for option in given:
            if option not in new["commands"].get(name, ()) and not {*name.split(), option} <= told:
                lacking.append(f"{name} {option}")
    lacking += [f"op {name}" for name in old["ops"] if name not in new["ops"]]  # files have them
    if old["plugin"][0] == new["plugin"][0]:
        lacking += [f"hook {name}" for name in old["hooks"] if name not in new["hooks"]]
        for name in old["hooks"].keys() & new["hooks"].keys():
            more = set(old["hooks"][name]) - set(new["hooks"][name])
            lacking += [f"hook {name}({argument})" for argument in sorted(more)]
    return sorted(lacking)


def _lost(name: str, old: dict[str, str], new: dict[str, str]) -> Iterator[str]:
    if name not in new:
        yield ""
        return
    before, now = _resolved(name, old), _resolved(name, new)
    if before and now and not now.more:
        for parameter in sorted(before.defaults.keys() - now.defaults.keys()):
            yield f"({parameter}=)"


def altered(old: dict[str, Any], new: dict[str, Any], changed: str) -> list[str]:
    """Tell which calls mean something else without a word under *Changed* or *Deprecated*."""
    told, found = words(changed), []
    for name in old["names"].keys() & new["names"].keys():
        before, now = _resolved(name, old["names"]), _resolved(name, new["names"])
        if not before or name.removeprefix("gradtape.") in told:
            continue
        if not now:
            found.append(f"{name} cannot be called")
            continue
        if before.takes_any and not now.takes_any:
            found.append(f"{name}(*more)")
        if before.takes_names and not (now.takes_names or now.more):
            found.append(f"{name}(**more)")
        pairs = list(zip(before.positions, now.positions, strict=False))
        places = [x and y for x, y in pairs]  # what had no name may get one
        known_before = {*before.defaults, *(y for x, y in pairs if not x)}
        known = {*now.defaults, ""} >= {*before.positions}
        if places != before.positions and known and not now.takes_any:
            found.append(f"{name}({', '.join(before.positions)}) in this order")
        for parameter, default in before.defaults.items():
            if default is not None and now.defaults.get(parameter, default) != default:
                found.append(f"{name}({parameter}={default}) by default")
        needed = {x for x, default in now.defaults.items() if default is None}
        found += [f"{name} without {x}" for x in sorted(needed - known_before)]
        if now.unnamed > before.unnamed:
            found.append(f"{name} with {before.unnamed} arguments")
    for name, taken in old.get("arguments", {}).items():
        for key, what in _taken_otherwise(taken, new["arguments"].get(name, {})):
            if not {*name.split()[1:], *([key] if key[0] == "-" else ())} <= told:
                found.append(f"{name} {key}{what}")
    return sorted(found)


def _taken_otherwise(old: dict[str, Any], new: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Give the arguments of a command that it takes in another way, with that way."""
    for key, now in new.items():
        before = old.get(key, {"required": False, "choices": []})
        if now["required"] and not before["required"]:
            yield key, " is required"
        for what in ("default", "values"):
            if now[what] != before.get(what, now[what]):
                yield key, f" has other {what} than {before[what]}"
        for lost in sorted({*before["choices"]} - {*now["choices"]} if now["choices"] else ()):
            yield key, f" {lost}"
    yield from ((key, " is missing") for key in old if key not in new and key[:1] != "-")


def uncounted(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Tell what is new in the plugin interface if its version is not."""
    if old["plugin"] != new["plugin"]:
        return []
    below = [name for name in new["names"] if name.startswith("gradtape.plugin.")]
    return sorted({*new["hooks"], *below} - {*old["hooks"], *old["names"]})


def _resolved(name: str, names: dict[str, str]) -> Call | None:
    told = names[name]
    while told.startswith(SAME):
        told = names.get(told.removeprefix(SAME), "")
    return call(told)


def packed(told: dict[str, Any]) -> bytes:
    """Return it as bytes."""
    return json.dumps(told, sort_keys=True).encode()
