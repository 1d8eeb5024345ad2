"""Make subclasses of gradtape's classes whose constructors take Keras's arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from ....core.extend import summary_of
from ....layers.base.weights import Rules
from ....training import Optimizer
from ....training.optimizers import options
from ..names import adapts, resolve

#: Arguments by their names in Keras 2.
_ONCE = {"lr": "learning_rate", "alpha": "negative_slope"}


def refuse(what: str, options: dict[str, Any]) -> None:
    """Raise ``TypeError`` if an option is neither None nor False: gradtape lacks these options."""
    given = sorted(name for name, value in options.items() if value not in (None, False))
    if given:
        raise TypeError(
            f"{what}: {', '.join(given)} not supported by gradtape; see docs/migration.md"
        )


def by_order(args: Any, order: str, named_first: str) -> dict[str, Any]:
    """Return arguments by name: in ``order``, or in ``named_first`` if the first is a string."""
    names = named_first if args and isinstance(args[0], str) else order
    return dict(zip(names.split(), args))


def arguments_of(path: str) -> dict[str, Parameter]:
    """Return the arguments of a gradtape class, including those it passes to its base classes.

    A layer's regularizers and constraints, and an optimizer's options, come last.
    """
    found: dict[str, Parameter] = {}
    for kind in resolve(path).__mro__:
        own = inspect.signature(kind.__init__).parameters
        found = {**own, **found}
        if "rules" in own or all(p.kind is not Parameter.VAR_KEYWORD for p in own.values()):
            break
    plain = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    known = {name: p for name, p in found.items() if p.kind in plain and name != "self"}
    further = dict.fromkeys(Rules.__annotations__) if "rules" in found else {}
    if issubclass(resolve(path), Optimizer) and "options" in found:
        further = {name: getattr(Optimizer, name) for name in options.OPTIONS}
    rest = {name: x for name, x in further.items() if name not in known}
    return known | {x: Parameter(x, Parameter.KEYWORD_ONLY, default=y) for x, y in rest.items()}


def adapted(path: str, order: str, *bases: Any, **defaults: Any) -> Any:
    """Return a subclass of a gradtape class with Keras's constructor.

    Parameters
    ----------
    path
        The name of the class under ``gradtape``.
    order
        The names of Keras's arguments in order; after a ``*`` by keyword only. A ``**`` at the end
        means any others.
    bases
        Base classes, which come before gradtape's; the first one's module becomes the module of the
        result. Their ``take_options`` gets the arguments that gradtape's constructor does not know.
    defaults
        Defaults that differ from gradtape's.
    """
    native: Any = resolve(path)
    known = arguments_of(path)
    signature = _signature(order, known, defaults)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}") from None
        bound.apply_defaults()
        given = dict(bound.arguments)
        del given["self"]
        others = given.pop("others", {})
        now = {old: new for old, new in _ONCE.items() if old not in known and new in known}
        given |= {now.get(name, name): value for name, value in others.items()}
        ours = {name: given.pop(name) for name in known if name in given}
        if hasattr(ours.get("seed"), "next"):  # a source of seeds
            ours["seed"] = int(ours["seed"].next()[0])
        for name in ("epsilon", "ema_momentum"):  # None is the default, in Keras 2
            if ours.get(name, 0) is None:
                del ours[name]
        native.__init__(self, **ours)
        self.take_options({name: x for name, x in given.items() if not _is_default(name, x)})

    def _is_default(name: str, value: Any) -> bool:
        usual = signature.parameters[name].default if name in signature.parameters else None
        return value is usual or (type(value) is type(usual) and value == usual)

    init: Callable[..., Any] = __init__
    vars(init).update(__signature__=signature, __wrapped__=native.__init__)
    told = f"See :class:`gradtape.{path}`; the arguments are Keras's.\n"
    contents = {
        "__init__": __init__,
        "__doc__": f"{summary_of(native)}\n\n{told}",
        "__module__": bases[0].__module__,
        **{x: vars(native)[x] for x in ("fixed_formula",) if x in vars(native)},
    }
    return adapts(path)(type(path.rpartition(".")[2], (*bases, native), contents))


def _signature(
    order: str, known: dict[str, Parameter], defaults: dict[str, Any]
) -> inspect.Signature:
    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    parameters = [Parameter("self", Parameter.POSITIONAL_ONLY)]
    for name in order.split():
        if name == "*":
            kind = Parameter.KEYWORD_ONLY
        elif name == "**":
            parameters.append(Parameter("others", Parameter.VAR_KEYWORD))
        else:
            default = known[name].default if name in known else None
            parameters.append(Parameter(name, kind, default=defaults.get(name, default)))
    return inspect.Signature(parameters)
