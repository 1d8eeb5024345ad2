"""What plugins change in the ops of others, and which traces such changes concern."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...public import IMPORTING
from ..base.lifetimes import MADE
from ..errors import PluginError
from ..ops.checks import check_rules
from .info import PluginInfo

if TYPE_CHECKING:
    from ..tensors.op import Op
    from .merging import Merged


class GivenRules:
    """Gradient rules that plugins gave to ops of others, and the rules that these had before."""

    def __init__(self) -> None:
        self._own: dict[Op, tuple[Any, Any, Any]] = {}
        #: By op, the rules as the op holds them, and as the plugin gave them.
        self.given: dict[Op, tuple[Any, Any, Any]] = {}

    def give(self, info: PluginInfo | None, op: Op, rules: Any) -> None:
        """Set a plugin's rules for an op, unless ``register_gradient`` has set some.

        Parameters
        ----------
        info
            The plugin; ``None`` for a function that raises, since several plugins have rules.
        op, rules
            The op, and its rules as the hook returned them.
        """
        if type(op.rules_provider) is str:
            return
        self._own.setdefault(op, (op.rules, op.vjp, op.rules_provider))
        if info is None:
            op.vjp, op.rules = rules, None
        else:
            op.replace_rules(rules)
            check_rules(op)
        op.rules_provider = info
        self.given[op] = (op.rules, op.vjp, rules)

    def give_back(self) -> None:
        """Restore the rules that ops had, before a new registry is built."""
        for op, own in self._own.items():
            if self._are_in_use(op):
                op.rules, op.vjp, op.rules_provider = own

    def _are_in_use(self, op: Op) -> bool:
        rules, vjp, _ = self.given.get(op, (op, op, op))
        return op.rules is rules and op.vjp is vjp

    def from_elsewhere(self, op: Op) -> str:
        """Return who replaced an op's own gradient rules.

        Parameters
        ----------
        op
            A registered op.

        Returns
        -------
        str
            A plugin of another distribution, or the module that called ``register_gradient``.
            Empty if every installation of the op's owner has the same rules.
        """
        if op.has_own_rules:
            return ""
        who, owner = op.rules_provider, op.provider
        if type(who) is str:
            return f"the module {who!r} (register_gradient)"
        if not self._are_in_use(op):
            return "an assignment to the op"
        same = who is owner or (who.distribution and who.distribution == owner.distribution)
        return "" if same else str(who)


class Meanings:
    """What ops, their rules and kernels were when traces last used them.

    Parameters
    ----------
    registry
        The registry, whose ops they are now.
    """

    def __init__(self, registry: Merged) -> None:
        self._registry = registry
        #: What ops meant in registries before this one.
        self.before: dict[str, tuple[Any, ...]] = {}
        #: The loaders of late ops in the registry before this one.
        self.loaders: dict[str, Any] = {}
        self._kept: dict[str, tuple[Any, ...]] = {}  # of late ops that nobody loaded again
        self._compared = False

    def compare(self) -> None:
        """Have functions traced again if ops, rules or kernels that they may use have changed.

        It is called for each trace, so that all traces so far were made with what ``before`` says.
        """
        if self._compared:
            return
        with IMPORTING:
            for name, meant in self.before.items():
                if name in self._registry.ops:
                    continue
                prefix = name.partition("::")[0]
                loader = self._registry.late_ops.get(prefix)
                if loader is not None and loader is self.loaders.get(prefix):
                    self._kept[name] = meant  # it would be the same
                    continue
                with suppress(PluginError):
                    self._registry.find(name)
            now = {**self._kept, **self._now()}
            # a removed op counts too: constants that were computed with it would stay
            if any(now.get(name) != meant for name, meant in self.before.items()):
                MADE.meaning_changed()
            self._compared = True

    def all(self) -> dict[str, tuple[Any, ...]]:
        """Return what each op meant when traces last used it; equal if nothing changed."""
        now = {**self._kept, **self._now()}
        return now if self._compared else {**now, **self.before}

    def _now(self) -> dict[str, tuple[Any, ...]]:
        registry, nothing = self._registry, (None, None, None)
        kernels: dict[str, dict[str, Any]] = {}
        for (name, backend), kernel in registry.kernels.items():
            kernels.setdefault(name, {})[backend] = kernel
        given = registry.rules.given
        return {
            name: (op, given.get(op, nothing)[2], kernels.get(name))
            for name, op in registry.ops.items()
        }
