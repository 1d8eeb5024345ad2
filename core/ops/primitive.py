"""``Primitive``: an op on arrays, with its kernel, its rules and its dispatch.

An op dispatches on the types of its arrays. A backend's arrays run a kernel; every other array type
(a traced symbol, a batch, the tensor handle itself) has registered a handler.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Self

from ..base.dtypes import SCALARS
from ..base.lifetimes import KERNEL_CACHES
from ..base.sizes import Open
from ..base.table import op_named, registry
from ..errors import BackendMismatch, PluginError
from .backend import Backend
from .dispatch import (
    ScalarTable,
    backend_for_type,
    scalar_tables,
    shape_witness,
    transforms,
    with_symbols,
)
from .kernels import checked_result, watched
from .promotion import floating_places, in_floats
from .rule import BatchRule, ForwardRule, Integers, Rule, check_traits, known, one_by_one, signature


class _Text:
    """``__doc__``: the class's text for a class of ops, the op's own text for an op."""

    __slots__ = ("text",)

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __get__(self, op: Primitive | None, owner: type | None = None) -> str | None:
        if op is None:
            return self.text
        from .docstrings import docstring_of  # no other module imports it, so no import deadlock

        return docstring_of(op)


class _Signature:
    """``__signature__``: None for a class of ops, which Python inspects itself; an op's own."""

    __slots__ = ()

    def __get__(self, op: Primitive | None, owner: type | None = None) -> inspect.Signature | None:
        if op is None:
            return None
        from .docstrings import signature_of

        return signature_of(op)


class Primitive:
    """An op on arrays: its record and its dispatch.

    Users work with the subclass :class:`Op`, which runs on tensors; it describes the parameters.
    """

    _gradtape_internal = (
        "ends_at for_vjp forget_made has_own_forward_rule has_own_rules held made_rules original "
        "pick_by provider quick replace_rules replace_vjp rules_provider set_gradients stored "
        "together twin"
    )

    __slots__ = (
        "__weakref__",
        "_kernels",
        "_made",
        "_rules",
        "_shapes_only",
        "_together",
        "_varying",
        "batch",
        "broadcasts",
        "defaults",
        "doc",
        "effect",
        "ends_gradients",
        "floating",
        "held",
        "holomorphic",
        "host",
        "identity",
        "infer",
        "inline",
        "inputs",
        "integers",
        "jvp",
        "kernel",
        "name",
        "original",
        "pointwise",
        "provider",
        "quick",
        "random",
        "reads",
        "rules_provider",
        "stored",
        "variadic",
        "verified",
        "view",
        "vjp",
    )

    def __init__(
        self,
        name: str,
        kernel: str | Callable[..., Any],
        *,
        inputs: Sequence[str] | None = None,
        gradients: Mapping[str, Callable[..., Any] | None] | None = None,
        vjp: Callable[..., Any] | None = None,
        shapes_only: Sequence[str] = (),
        together: Callable[..., Any] | None = None,
        infer: Callable[..., Any] | None = None,
        params: Mapping[str, Any] | None = None,
        broadcasts: bool = False,
        holomorphic: bool = False,
        batch: BatchRule | None = None,
        jvp: ForwardRule | None = None,
        effect: bool = False,
        floating: bool | Sequence[str] = False,
        view: bool | str | None = None,
        identity: bool = False,
        reads: str = "values",
        integers: Integers = None,
        ends_gradients: bool | Sequence[str] = False,
        pointwise: bool | None = None,
        inline: bool = False,
        random: bool = False,
        verified: bool = False,
        host: bool | Callable[[Backend], Callable[..., Any] | None] = False,
        doc: str = "",
    ) -> None:
        self.name = name
        self.kernel = kernel
        self.inputs, self.defaults = signature(name, kernel, inputs, params)
        self.variadic = any(name.startswith("*") for name in self.inputs)
        self.infer = infer
        self.broadcasts = broadcasts
        self.holomorphic = holomorphic
        self.batch = known(batch, ("elementwise",), name, "batch")
        self.jvp = known(jvp, ("linear", "multilinear"), name, "jvp")
        self.effect = effect
        self.floating = floating_places(floating, self.inputs, name)
        self.view = view
        self.identity = identity
        self.reads = reads
        self.integers = integers
        self.ends_gradients = ends_gradients
        self.pointwise = batch == "elementwise" if pointwise is None else pointwise
        self.inline = inline
        self.random = random
        self.verified = verified
        self.host = host
        self.doc = doc
        self._begin()
        self._shapes_only = (vjp, frozenset(shapes_only))  # a replaced rule may read values
        self._set_rules(gradients, vjp, together)
        check_traits(self)
        self._made = self._derivatives()

    def _set_rules(self, gradients: Any, vjp: Any, together: Any) -> None:
        """Set the gradient rules that the record has, in one of three forms."""
        if sum(rule is not None for rule in (gradients, vjp, together)) > 1:
            raise PluginError(f"op {self.name!r}: give one of gradients, vjp and together")
        self.vjp = vjp
        if together is not None:
            self.pick_by(together)
        if gradients is not None:
            self.set_gradients(gradients)

    def _begin(self) -> None:
        """Set what is no part of the record: who provides the op, its rules, what it remembers."""
        self.provider: Any = None
        self.rules_provider: Any = None
        self.rules = None
        self._together: tuple[Any, Any] = (None, None)
        # by the tuple of array types; a unary op also has entries by the bare type
        self._kernels: dict[Any, Callable[..., Any]] = {}
        # the same; these are looked up for every call
        self._varying: dict[Any, Callable[..., Any]] = {}
        #: The backends on which a first result was as the record says.
        self.held: set[str] = set()
        #: For a twin: the op that it copies, and the holder of its gradient rule.
        self.original: Any = self
        self.stored: Any = None

    def _derivatives(self) -> tuple[Any, Any, Any]:
        """Return the rules, the joint rule and the forward rule, without the checks around them."""
        joint = self.together or self.vjp
        return self._rules, getattr(joint, "checks", joint), self.jvp

    @property
    def has_own_rules(self) -> bool:
        """Whether its gradient rules are still the original ones."""
        rules, joint, _ = self._derivatives()
        return rules is self._made[0] and joint is self._made[1]

    @property
    def has_own_forward_rule(self) -> bool:
        """Whether its forward rule is still the original one."""
        return self.jvp is self._made[2]

    def twin(self, stored: Any) -> Self:
        """Return an unregistered copy of the op, which can have its own rules.

        Parameters
        ----------
        stored
            The holder of its rules, kept as ``stored``.
        """
        twin: Self = copy.copy(self.original)
        twin.original, twin.stored = self.original, stored
        twin._kernels, twin._varying, twin.held = {}, {}, set()
        return twin

    def __copy__(self) -> Self:
        copied = object.__new__(type(self))
        for kind in type(self).__mro__:
            for name in getattr(kind, "__slots__", ()):
                if name != "__weakref__" and hasattr(self, name):
                    setattr(copied, name, getattr(self, name))
        return copied

    def set_gradients(self, gradients: Mapping[str, Callable[..., Any] | None]) -> None:
        """Set the op's gradient rules, by input name.

        Parameters
        ----------
        gradients
            A rule for each input, ``NONDIFF`` for an input without one; see :class:`Rule`.

        Raises
        ------
        PluginError
            If an input is missing or unknown, or a rule has a parameter that the op does not know.
        """
        self.rules = self._by_input(gradients)

    def _by_input(
        self, gradients: Mapping[str, Callable[..., Any] | None]
    ) -> tuple[Rule | None, ...]:
        unknown = sorted(set(gradients) - set(self.inputs))
        missing = [name for name in self.inputs if name not in gradients]
        if unknown or missing:
            raise PluginError(
                f"op {self.name!r}: gradients must name each of its inputs {self.inputs}; "
                f"unknown: {unknown}, missing: {missing} (write NONDIFF for an input without one)"
            )
        rules = []
        for name in self.inputs:
            fn = gradients[name]
            rules.append(None if fn is None else Rule(self, name, fn))
        return tuple(rules)

    def made_rules(self, rules: Mapping[str, Any] | Callable[..., Any]) -> tuple[Any, Any]:
        """Return ``vjp`` and ``rules`` for an argument of :meth:`replace_rules`."""
        if isinstance(rules, Mapping):
            return self.vjp, self._by_input(rules)
        return self.joint_rule(rules), None

    def replace_rules(self, rules: Mapping[str, Any] | Callable[..., Any]) -> None:
        """Replace the gradient rules: by input name, or one function with named parameters."""
        self.vjp, self.rules = self.made_rules(rules)

    def joint_rule(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Return a user's rule, a function of tensors, as a ``vjp`` of this op."""
        raise NotImplementedError

    def replace_vjp(self, vjp: Callable[..., Any]) -> None:
        """Replace ``vjp`` by a function that reads the same inputs and outputs."""
        known, names = self._shapes_only
        self._shapes_only = (vjp if known is self.vjp else known, names)
        self.vjp = vjp

    def pick_by(self, together: Callable[..., Any]) -> None:
        """Set the gradient rule of an op that picks elements of its first input.

        Parameters
        ----------
        together
            The rule, which handles many picks at once; see :class:`Op`.
        """
        self.vjp = one_by_one(together)
        self._shapes_only = (self.vjp, frozenset((self.inputs[0], "out")))
        self._together = (self.vjp, together)

    @property
    def together(self) -> Callable[..., Any] | None:
        """The rule for many picks at once, of an op that picks elements of its first input."""
        vjp, together = self._together
        return together if vjp is self.vjp else None  # the rule may have been replaced

    @property
    def rules(self) -> tuple[Rule | None, ...] | None:
        """The gradient rules by input, or None if there are none or ``vjp`` serves all inputs."""
        return self._rules

    @rules.setter
    def rules(self, rules: tuple[Rule | None, ...] | None) -> None:
        self._rules = rules
        for rule in rules or ():
            if rule is not None:
                rule.belongs_to(self.name)
        # per input, for the quick paths: where the one value is that the rule reads, fn and check
        self.quick: tuple[tuple[int, Callable[..., Any], Any] | None, ...] = tuple(
            None if rule is None or rule.quick is None else (rule.quick, rule.plain[0], rule.check)
            for rule in rules or (None,) * len(self.inputs)
        )

    def ends_at(self, place: int) -> bool:
        """Return whether an input has no gradient on purpose, or has none to lose.

        Parameters
        ----------
        place
            The input's position among the op's arrays.
        """
        name = self.inputs[min(place, len(self.inputs) - 1)]
        if name == "like" or self.reads == "shapes" or self.random:
            return True
        ends = self.ends_gradients
        return ends if isinstance(ends, bool) else name in ends

    @property
    def differentiable(self) -> bool:
        """Whether any input has a gradient rule."""
        return self.vjp is not None or bool(self.rules and any(self.rules))

    def for_vjp(
        self, inputs: tuple[Any, ...], outputs: tuple[Any, ...]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the arguments of ``vjp``, without the values that it does not read.

        Parameters
        ----------
        inputs, outputs
            The op's input and output tensors.

        Returns
        -------
        inputs, outputs : tuple
            The same, with placeholders of equal shape and dtype for values that are not read.
        """
        vjp, names = self._shapes_only
        if not names or vjp is not self.vjp:
            return inputs, outputs
        last = len(self.inputs) - 1
        kept = [
            shape_witness(x) if self.inputs[min(i, last)] in names else x
            for i, x in enumerate(inputs)
        ]
        if "out" in names:
            outputs = tuple(shape_witness(y) for y in outputs)
        return tuple(kept), outputs

    __signature__ = _Signature()

    def __get__(self, instance: object, owner: type | None = None) -> Self:
        """Return the op itself: as a descriptor, ``help`` lists it as a routine, not a value."""
        return self

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.__doc__ = _Text(vars(cls).get("__doc__"))  # type: ignore[assignment]

    @property
    def __name__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        required = inspect.Parameter.empty
        params = [k if v is required else f"{k}={v!r}" for k, v in self.defaults.items()]
        mark = ["*"] if params and not self.variadic else []
        arguments = [*self.inputs, *mark, *params]
        return f"<op {self.name}({', '.join(arguments)})>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.stored is not None:
            raise TypeError(
                f"op {self.name!r} has a gradient rule from a saved file and cannot be pickled; "
                "save the module that uses it with gradtape.save"
            )
        return op_named, (self.name,)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if self.stored is None:
            return self
        twin: Self = copy.deepcopy(self.stored, memo).twin
        return twin

    def __call__(self, *inputs: Any, **params: Any) -> Any:
        """Run the op on tensors; the active tapes record it."""
        raise NotImplementedError

    def raw(self, *arrays: Any, **params: Any) -> Any:
        """Run the op on arrays of one type, and return arrays of that type.

        Parameters
        ----------
        arrays
            Arrays of a backend, a trace or a batch, and weak Python scalars.
        params
            The op's parameters.

        Returns
        -------
        array or sequence of arrays
            The results; no tape records them.

        Raises
        ------
        TypeError
            If the number of arrays is wrong, or no backend owns one of them.
        BackendMismatch
            If the arrays belong to different backends.
        """
        try:
            kernel = self._kernels[tuple(map(type, arrays))]
        except KeyError:
            kernel = self.resolve(arrays)
        return kernel(*arrays, **params)

    def _owner_of(self, kind: type) -> Backend:
        """Return the backend that owns a type of array; the error shows how the op is called."""
        try:
            return backend_for_type(kind, self.name)
        except TypeError as error:
            if not issubclass(kind, (list, tuple)):
                raise
            given = "arrays, one after another, not" if self.variadic else "arrays, not"
            raise TypeError(
                f"{error}; call {self.name}{inspect.signature(self)} with {given} a {kind.__name__}"
            ) from None

    def resolve(self, arrays: Sequence[Any]) -> Callable[..., Any]:
        """Find, and remember, the function that runs this op on arrays of these types.

        Parameters
        ----------
        arrays
            The op's arrays.

        Returns
        -------
        callable
            A function of the arrays and the op's parameters. If it has a method ``on_tensors``, it
            is not remembered, and that method may run the op on tensors instead.

        Raises
        ------
        TypeError
            If the number of arrays is wrong, or no backend owns one of them.
        BackendMismatch
            If the arrays belong to different backends.
        """
        types = tuple(map(type, arrays))
        if types in self._varying:
            return self._varying[types]
        if len(arrays) != len(self.inputs) and not self.variadic:
            raise TypeError(
                f"{self.name}: expected {len(self.inputs)} arrays ({', '.join(self.inputs)}), "
                f"got {len(arrays)}"
                + ("; parameters are keyword-only" if len(arrays) > len(self.inputs) else "")
            )
        if any(issubclass(kind, Open) for kind in types):
            return lambda *given, **params: self.raw(*with_symbols(given), **params)
        found = [transforms[kind] for kind in types if kind in transforms]
        if found:
            kernel = in_floats(self, max(found, key=itemgetter(0))[1](self))
        else:
            owners = {}
            for kind in types:
                if kind not in SCALARS:
                    backend = self._owner_of(kind)
                    owners[backend.name] = backend
            if len(owners) > 1:
                raise BackendMismatch(
                    f"{self.name}: the inputs are on backends {' and '.join(sorted(owners))}; "
                    f"move one with tensor.to({sorted(owners)[0]!r})"
                )
            if not owners:
                raise TypeError(f"{self.name}: expected an array, got {arrays!r}")
            (backend,) = owners.values()
            plain = watched(self, backend, self.kernel_for(backend))
            kernel = in_floats(self, plain)
            if backend.scalar_array_type in types:
                for tables in scalar_tables.values():
                    tables.setdefault(backend.scalar_array_type, ScalarTable(backend.weak_scalar))
        if hasattr(kernel, "on_tensors"):
            KERNEL_CACHES.keep(self, self._varying, types, lambda: kernel)
            return kernel
        KERNEL_CACHES.keep(self, self._kernels, types, lambda: kernel)
        return kernel if found else in_floats(self, checked_result(self, backend, plain))

    def kernel_for(self, backend: Backend) -> Callable[..., Any]:
        """Return the kernel that computes this op on a backend's arrays.

        Parameters
        ----------
        backend
            The backend.

        Returns
        -------
        callable
            A function of the backend's arrays and the op's parameters.

        Raises
        ------
        UnknownOp
            If the op is not registered, or the backend has no kernel for it.
        """
        return registry().kernel(self.original, backend)

    def forget_made(self) -> None:
        """Drop remembered kernels, since the plugins changed or a watcher came or went."""
        self._kernels.clear()
        self._varying.clear()
        self.held.clear()


Primitive.__doc__ = _Text(Primitive.__doc__)  # type: ignore[assignment]
