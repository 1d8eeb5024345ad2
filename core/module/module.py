"""``Module``: an object that tracks its variables and submodules."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from ...hints import Lacking, hinted
from ..base.arguments import LOADING_WEIGHTS, SAVING, hinted_arguments
from ..base.context import is_noting, note_trainable
from ..base.lifetimes import REPLACED
from ..base.table import services
from ..functions.concrete import RestoredFunction
from ..functions.function import STORE, Function
from ..tensors.assignment import exclusive
from ..tensors.custom_records import transfer
from ..tensors.tensor import Operators, Tensor
from ..tensors.variable import Variable
from .attributes import (
    HELD_BY,
    check_named,
    check_replaced,
    check_setting,
    freeze,
    is_frozen,
    thaw,
)
from .calls import CALLS, PLAIN, inheriting_training, remembering_signatures
from .contents import (
    STAMP,
    Contents,
    held_by,
    known_contents,
    leaves_in,
    note_change,
    thawed,
)
from .summary import html_table, text_table


class Module:
    """Base class of everything that holds variables: models, layers, optimizers.

    Assign variables and modules to attributes, also inside lists, tuples and dicts. The module
    finds them there, in a stable order. Methods decorated with :func:`gradtape.function` are saved
    as graphs. A call with ``training=True`` or ``False`` passes the value to all modules called
    inside it that take ``training`` and are called without it.

    A class that a plugin provides sets its name in files:
    ``class Dense(Layer, saved_as="layers.Dense")``. It then needs ``get_config()``, and a
    constructor that takes the settings that this returns.

    Parameters
    ----------
    name
        A Python identifier; the class name in snake case by default.

    Attributes
    ----------
    saved_as : str or None
        The name of the class in files; subclasses do not inherit it.

    Raises
    ------
    ValueError
        If ``name`` is not an identifier.

    Examples
    --------
    >>> class Scale(gt.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = gt.Variable(2.0)
    ...     def __call__(self, x):
    ...         return x * self.factor
    >>> scale = Scale()
    >>> scale(gt.constant(3.0)).item()
    6.0
    >>> list(scale.named_variables)
    ['factor']
    """

    _gradtape_internal = "saved_as"
    _gradtape_hooks = "call_signatures named_leaves own_leaves"

    saved_as: ClassVar[str | None] = None
    #: Whether its name may be any text, which files turn into an identifier.
    _gradtape_any_name: ClassVar[bool] = False

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = self._gradtape_default_name()
        if isinstance(name, Operators):
            raise TypeError(
                f"{type(self).__name__}: the constructor takes settings, got a tensor; make the "
                f"module first, then call it: {type(self).__name__}(...)(x)"
            )
        if not (self._gradtape_any_name and isinstance(name, str)) and not str(name).isidentifier():
            raise ValueError(f"a module's name must be a Python identifier, got {name!r}")
        self._name = str(name)

    @classmethod
    def _gradtape_default_name(cls) -> str:
        """Return the name of an object that is made without one."""
        return snake_case(cls.__name__)

    def __init_subclass__(cls, saved_as: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.saved_as = saved_as  # a subclass computes something else, so the name is not inherited
        elsewhere = not vars(cls).keys().isdisjoint(("forward", "call"))
        if elsewhere and not any("__call__" in vars(base) for base in cls.__mro__):
            setattr(cls, "__call__", _misnamed)  # noqa: B010  # types: a module has no call
        call = cls.__dict__.get("__call__")
        if call not in (None, _misnamed) and not isinstance(call, Function):
            setattr(cls, "__call__", remembering_signatures(inheriting_training(cls, call)))  # noqa: B010

    def __setattr__(self, name: str, value: Any) -> None:
        held = self.__dict__.get(name)
        if isinstance(held, Variable) and not isinstance(value, Variable):
            check_replaced(self, name, held, value)
        if HELD_BY in self.__dict__:
            check_setting(self, name, value)
        super().__setattr__(name, value)
        # the setter of a property may have changed any attribute
        note_change(self.__dict__, held, value if name in self.__dict__ else self)
        if held is value:
            return
        if isinstance(held, (Variable, Module)):
            REPLACED.note([held] if isinstance(held, Variable) else held.variables)
        elif isinstance(held, (list, tuple, dict)):
            found = [x for _, x in leaves_in(name, held, (Variable, Module), None)]
            if found:
                REPLACED.note(v for x in found for v in getattr(x, "variables", (x,)))

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        note_change(self.__dict__, self)

    @property
    def name(self) -> str:
        """The module's name."""
        return getattr(self, "_name", snake_case(type(self).__name__))

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables: own ones by sorted attribute name, then submodules', breadth first."""
        return contents_of(self).variables

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """The variables that train: none of a frozen module, nor of frozen modules inside it."""
        if not self.trainable:
            return ()
        # a trace notes which variables train; a subclass may have other variables
        if is_noting() or type(self).variables is not Module.variables:
            return thawed(self.variables, self.submodules, self)
        return contents_of(self).trainable()

    @property
    def trainable(self) -> bool:
        """Whether the module trains. Setting it also sets it for all modules inside.

        A frozen module's variables are not trainable, and tapes do not watch them. A frozen
        :class:`BatchNorm` uses its moving statistics. After freezing and thawing, the same
        variables train as before. Nothing inside a frozen module trains, also if you set a part of
        it to train: thaw the module first. Files store this setting.
        """
        return note_trainable(self, not is_frozen(self))

    @trainable.setter
    def trainable(self, value: bool) -> None:
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(
                f"module {self.name!r}: trainable must be True or False, got {value!r}; to choose "
                "variables, set their own trainable"
            )
        for module in (self, *self.submodules):
            if value:
                thaw(module)
            else:
                freeze(module)

    @property
    def submodules(self) -> tuple[Module, ...]:
        """All modules below this one, breadth first, each once."""
        return contents_of(self).submodules

    def _gradtape_leaves(self) -> list[tuple[str, Any]]:
        """Return where it, and the modules inside, hold variables and modules, and which."""
        found: list[tuple[str, Any]] = []
        for module in (self, *self.submodules):
            own = type(module).own_leaves is Module.own_leaves
            found += held_by(module) if own else module.own_leaves()
        return found

    def _gradtape_containers(self) -> list[Any]:
        """Return what a walk sees in each list or dict that may hold modules or variables."""
        return [x for x in contents_of(self).containers if x.may_hold]

    @property
    def named_variables(self) -> dict[str, Variable]:
        """Variables by path, for instance ``"layers/0/kernel"``; a shared one once.

        A path that another variable has already (keys ``1`` and ``"1"``) gets a ``_`` at its end.
        """
        found: dict[str, Variable] = {}
        for path, leaf in self.named_leaves():
            if isinstance(leaf, Variable):
                while path in found:
                    path += "_"
                found[path] = leaf
        return found

    def named_leaves(self) -> Iterator[tuple[str, Variable | Module]]:
        """Yield ``(path, variable or submodule)`` breadth first, each object once.

        Yields
        ------
        path : str
            The attributes that lead to it, joined by ``"/"``: ``"layers/0/kernel"``.
        leaf : Variable or Module
            The object at this path.
        """
        return _all_leaves(self, None)

    def own_leaves(self) -> Iterator[tuple[str, Variable | Module]]:
        """Yield ``(path, variable or module)`` found directly in this module's attributes.

        Yields
        ------
        path : str
            The attribute, followed by ``"/"`` and an index or key for each container inside it. If
            a container is in an attribute several times, its contents come once.
        leaf : Variable or Module
            The object at this path.
        """
        return _own_leaves(self, None)

    def _attribute_order(self) -> list[str]:
        return sorted(vars(self))

    def functions(self) -> dict[str, Function[..., Any] | RestoredFunction]:
        """Return the methods (and attributes) that are decorated with ``gradtape.function``.

        Returns
        -------
        dict
            The functions by name; those of a loaded module run the traces of its file.
        """
        found: dict[str, Function[..., Any] | RestoredFunction] = {}
        for cls in reversed(type(self).__mro__):
            for attribute, value in vars(cls).items():
                if isinstance(value, Function):
                    found[attribute] = getattr(self, attribute)
                elif not isinstance(value, Lacking):
                    found.pop(attribute, None)
        kinds = (Function, RestoredFunction)
        found.update({k: v for k, v in vars(self).items() if isinstance(v, kinds)})
        return found

    def call_signatures(self) -> list[Any]:
        """Return the ``(args, kwargs)`` of past calls, with a ``TensorSpec`` for each tensor.

        Returns
        -------
        list
            A pair per signature that ``__call__`` was called with, up to 64 of them.
        """
        return list(vars(self).get(CALLS, {}).values())

    def to(self, where: str) -> Module:
        """Move every variable to a backend or device, in place: ``module.to("cupy:1")``.

        Parameters
        ----------
        where
            ``"numpy"``, ``"cupy"``, or with a device: ``"cupy:1"``.

        Returns
        -------
        Module
            The module itself.

        Raises
        ------
        LookupError
            If no plugin provides the backend; no variable is moved.
        BackendUnavailable
            If the backend cannot be used here; no variable is moved.
        """
        variables = self.variables
        with exclusive(variables):
            moved = [(v, transfer(Tensor(v.array), where).array) for v in variables]
            for variable, array in moved:  # all or nothing
                variable.set_array(array)
        return self

    @hinted_arguments(LOADING_WEIGHTS)
    def load_weights(
        self,
        path: Any,
        *,
        mapping: Any = None,
        layout: str | None = None,
        strict: bool = True,
        max_bytes: int | None = None,
    ) -> Any:
        """Load weights from a file into the variables; see :func:`gradtape.load_weights`.

        Parameters
        ----------
        path, mapping, layout, strict, max_bytes
            As for :func:`gradtape.load_weights`.

        Returns
        -------
        WeightsReport
            What was done with each array and variable.
        """
        return services["saving.load_weights"](
            path, self, mapping=mapping, layout=layout, strict=strict, max_bytes=max_bytes
        )

    @hinted_arguments(SAVING)
    def save_weights(self, path: Any, *, layout: str = "gradtape") -> None:
        """Save the variables, without functions; see :func:`gradtape.save_weights`.

        Parameters
        ----------
        path, layout
            As for :func:`gradtape.save_weights`.
        """
        services["saving.save_weights"](self, path, layout=layout)

    def set_trainable(self, value: bool, *patterns: str) -> tuple[str, ...]:
        """Freeze parts of the module, or let them train again, selected by name.

        Parameters
        ----------
        value
            As for :attr:`trainable`: ``False`` freezes a part and everything in it.
        patterns
            Paths of modules inside, as :meth:`named_leaves` returns them. ``*`` matches any text,
            ``?`` matches one character, and ``[0-3]`` matches one of these characters.

        Returns
        -------
        tuple of str
            The paths that matched.

        Raises
        ------
        ValueError
            If a pattern matches no module, if you pass no pattern, or if a part would train inside
            a frozen module. Nothing changes then.
        TypeError
            If ``value`` is not True or False.

        Examples
        --------
        >>> model = gt.layers.Sequential([gt.layers.Dense(2), gt.layers.Dense(1)])
        >>> model.set_trainable(False, "layers/0")
        ('layers/0',)
        >>> model.layers[0].trainable, model.trainable
        (False, True)
        """
        parts = {path: leaf for path, leaf in self.named_leaves() if isinstance(leaf, Module)}
        matched: dict[str, Module] = {}
        for pattern in patterns:
            found = {path: x for path, x in parts.items() if fnmatch.fnmatchcase(path, pattern)}
            if not found:
                variables = fnmatch.filter(self.named_variables, pattern)
                instead = (
                    f"; {variables[0]!r} is a variable: set its trainable" if variables else ""
                )
                raise ValueError(
                    f"module {self.name!r}: {pattern!r} matches none of the modules in it: "
                    f"{', '.join(parts) or 'there are none'}{instead}"
                )
            matched |= found
        closed = [x for x in ("", *parts) if is_frozen(parts[x] if x else self)] if value else []
        for path, module in matched.items():
            above = [x for x in closed if not x or path.startswith(f"{x}/")]
            if above and module is not self and not any(x in matched for x in above):
                what = f"{above[0]!r}, which holds it," if above[0] else "the module itself"
                raise ValueError(
                    f"module {self.name!r}: {path!r} cannot train, since {what} is frozen; thaw "
                    "that first, and freeze what else is in it"
                )
        if not patterns:
            raise ValueError(
                "set_trainable: pass the paths of the parts; to set the whole module, set its "
                "trainable attribute"
            )
        for module in matched.values():
            module.trainable = value
        return tuple(matched)

    def summary(self, form: str = "text") -> str:
        """Return a table of the layers: name, output shape, number of parameters.

        Parameters
        ----------
        form
            ``"text"``, the default, or ``"html"``.

        Returns
        -------
        str
            The table. Output shapes are those of the last call. ``?`` marks the batch size, and the
            number of parameters of a layer that is not built. The layers inside a layer follow it,
            indented, and its count includes theirs. A layer in several places counts once. The
            states of random numbers are not parameters. A module that does not train is marked as
            frozen, and the last line counts the trainable parameters.

        Raises
        ------
        ValueError
            If ``form`` is neither.
        """
        forms = {"text": text_table, "html": html_table}
        if form not in forms:
            raise ValueError(f"summary: form must be 'text' or 'html', got {form!r}")
        return forms[form](self)

    def _repr_html_(self) -> str:
        """Return the table that notebooks show."""
        return html_table(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Reduce it for pickle and copy to its attributes, without its traces."""
        reduced = super().__reduce_ex__(protocol)
        if not isinstance(reduced, tuple) or len(reduced) < 3 or type(reduced[2]) is not dict:
            return reduced  # the class defines its own reduction
        state = {name: value for name, value in reduced[2].items() if name not in _NOT_COPIED}
        for name, value in state.items():
            check_named(f"{type(self).__name__}.{name}", value)
        return (*reduced[:2], state, *reduced[3:])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {len(self.variables)} variables>"


_NOT_COPIED = (STORE, STAMP, HELD_BY)


def _misnamed(self: Module, *args: Any, **kwargs: Any) -> Any:
    """Refuse a call of a class that is written as for PyTorch, or as a layer."""
    for base in type(self).__mro__:  # a mixin behind the class may have a call
        call = vars(base).get("__call__", _misnamed)
        if call is not _misnamed:
            return call(self, *args, **kwargs)
    name = "forward" if hasattr(type(self), "forward") else "call"
    derive = ", or derive from Model" if name == "call" else ""
    raise TypeError(
        f"{type(self).__name__} defines {name}, but gradtape calls the method __call__ of a "
        f"Module, or call of a Layer or Model: rename it{derive}"
    )


_misnamed.refuses = True  # type: ignore[attr-defined]  # saving sees a module without a call

hinted(Module, "Module")


def saved_classes(*namespaces: Mapping[str, Any]) -> dict[str, type[Module]]:
    """Return the classes in these namespaces that have a name in files, by this name.

    A plugin returns them from its hook ``gradtape_modules``: ``saved_classes(vars(my_layers))``.

    Parameters
    ----------
    namespaces
        The ``vars`` of modules or packages.

    Returns
    -------
    dict
        Names in files, with the subclasses of :class:`Module` that have them.

    Raises
    ------
    ValueError
        If two classes set the same name.

    Examples
    --------
    >>> from gradtape.plugin import saved_classes
    >>> class Scale(gt.Module, saved_as="acme.Scale"):
    ...     pass
    >>> list(saved_classes({"Scale": Scale, "other": 3}))
    ['acme.Scale']
    """
    found: dict[str, type[Module]] = {}
    for value in chain.from_iterable(namespace.values() for namespace in namespaces):
        if not isinstance(value, type) or not issubclass(value, Module) or value.saved_as is None:
            continue
        if found.setdefault(value.saved_as, value) is not value:
            raise ValueError(
                f"{found[value.saved_as]!r} and {value!r} are both saved as {value.saved_as!r}; "
                "each name in files needs one class"
            )
    return found


def snake_case(name: str) -> str:
    """Return a class name as a variable name: ``HTTPServer2`` becomes ``http_server2``."""
    name = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().lstrip("_") or "module"


def contents_of(module: Module) -> Contents:
    """Return what is in a module; a walk finds it, unless nothing changed since the last one."""
    found = known_contents(module)
    if found is not None:
        return found
    found = Contents(module)
    if type(module).named_leaves is Module.named_leaves:
        leaves = [leaf for _, leaf in _all_leaves(module, found)]
    else:
        leaves, found.cacheable = [leaf for _, leaf in module.named_leaves()], False
    found.variables = tuple([leaf for leaf in leaves if isinstance(leaf, Variable)])
    found.submodules = tuple([leaf for leaf in leaves if isinstance(leaf, Module)])
    found.keep()
    return found


def _all_leaves(root: Module, contents: Contents | None) -> Iterator[tuple[str, Variable | Module]]:
    """Yield the leaves of a module and of those inside; note what the walk reads."""
    seen: set[int] = {id(root)}
    queue: list[tuple[str, Module]] = [("", root)]
    while queue:
        prefix, module = queue.pop(0)
        below: list[tuple[str, Module]] = []
        if contents is not None and module is not root:
            contents.enter(module)
        if type(module).own_leaves is Module.own_leaves:
            leaves = _own_leaves(module, contents)
        else:  # it may find something else each time
            leaves = module.own_leaves()
            if contents is not None:
                contents.cacheable = False
        for path, leaf in leaves:
            if id(leaf) in seen:
                continue
            seen.add(id(leaf))
            if isinstance(leaf, Module):
                below.append((prefix + path, leaf))
            else:
                yield prefix + path, leaf
        yield from below
        queue += [(path + "/", leaf) for path, leaf in below]


def _own_leaves(
    module: Module, contents: Contents | None
) -> Iterator[tuple[str, Variable | Module]]:
    state = vars(module)
    for attribute in module._attribute_order():
        value = state[attribute]
        if isinstance(value, (Variable, Module)):
            if not attribute.startswith("_gradtape"):
                yield attribute, value
        elif type(value) not in PLAIN and not attribute.startswith("_gradtape"):
            yield from leaves_in(attribute, value, (Variable, Module), contents)
