"""gradtape's models as modules of PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

from ..core.extend import (
    Module,
    Tensor,
    Variable,
    calling_in,
    exclusive,
    init_scope,
    is_unbuilt,
    to_numpy,
)
from .calls import values_of
from .in_torch import Run, outside_dynamo, run_in_torch
from .torch_arrays import tensor_of
from .trees import Parts


class TorchModule(torch.nn.Module):  # type: ignore[misc]
    """A model of gradtape as a module of PyTorch.

    Trainable variables become parameters and other variables become buffers, named by their paths.
    PyTorch's values are the ones that count: the model gets them for each call.

    Attributes
    ----------
    model : gradtape.Module
        The model. Its own variables keep their values until :meth:`update_model`.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        if is_unbuilt(model):
            raise ValueError(
                f"to_torch: {model.name!r} has no weights yet: call it once with gradtape, or set "
                "its input shape"
            )
        self.model = model
        trained = {id(v) for v in model.trainable_variables}
        self._variables: list[Variable] = []
        self._homes: list[tuple[torch.nn.Module, str]] = []
        for path, variable in model.named_variables.items():
            *folders, name = [part.replace(".", "_") or "_" for part in path.split("/")]
            home: Any = self
            for folder in folders:
                home = _child(home, folder)
            while hasattr(home, name):
                name += "_"
            value = torch.from_numpy(to_numpy(variable.array).copy())
            if id(variable) in trained:
                home.register_parameter(name, torch.nn.Parameter(value))
            else:
                home.register_buffer(name, value)
            self._variables.append(variable)
            self._homes.append((home, name))

    @outside_dynamo
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model; ``training`` is that of the module unless given."""
        with exclusive(self._variables):  # two threads must not start from the same state
            return self._called(args, kwargs)

    def _called(self, args: Any, kwargs: Any) -> Any:
        given = Parts((args, kwargs), torch.Tensor)
        results: list[Any] = []
        variables, homes = self._variables, self._homes
        count = len(variables)
        replayed = torch._C._current_graph_task_id() != -1

        def compute(xs: list[Tensor]) -> list[Tensor]:
            ins, keywords = given.filled(xs[count:])
            values = [x.array for x in xs[:count]]
            with values_of(variables, values), calling_in(self.training):
                result = Parts(self.model(*ins, **keywords), (Tensor, Variable))
                tensors = result.taken()
                after = [v.array for v in variables]
            changed = {i: x for i, x in enumerate(after) if x is not values[i]}
            _check_changes({homes[i][1]: x for i, x in changed.items()}, replayed)
            # copies: a variable may have got the memory of an argument, or of another variable
            results[:] = [result, {i: x.copy() for i, x in changed.items()}]
            return tensors

        state = [getattr(home, name) for home, name in homes]
        self._check(state)
        passed = list(state)
        if torch.is_grad_enabled():  # the graph must not see what this and later calls assign
            passed = [
                x.clone() if name in home._buffers else x
                for x, (home, name) in zip(state, homes, strict=True)
            ]
        found = run_in_torch(Run(compute, variables), [*passed, *given.tensors])
        result, changed = results
        _assign([(state[i], x) for i, x in changed.items() if homes[i][1] in homes[i][0]._buffers])
        return result.filled(found)

    def _check(self, state: Sequence[Any]) -> None:
        other = [home for home, _ in self._homes if home.training != self.training]
        if other:
            raise ValueError(
                "to_torch: a part of the module is in another mode than the whole, and a gradtape "
                "model has one mode: call train() or eval() of the whole module; to keep layers "
                "from training, set trainable=False of the gradtape layers before to_torch"
            )
        for v, x, (_, name) in zip(self._variables, state, self._homes, strict=True):
            dtype = str(x.dtype).removeprefix("torch.")
            if dtype != v.dtype.name or tuple(x.shape) != v.shape:
                raise TypeError(
                    f"to_torch: {name!r} is {dtype}{list(x.shape)} here, and "
                    f"{v.dtype.name}{list(v.shape)} in the gradtape model, which computes in its "
                    "own dtypes: convert the model before to_torch"
                )

    def update_model(self) -> Module:
        """Assign the values of parameters and buffers to the gradtape model.

        Returns
        -------
        Module
            The model, to be saved for instance.
        """
        for variable, (home, name) in zip(self._variables, self._homes, strict=True):
            value = getattr(home, name).detach().cpu().numpy().copy()
            with init_scope():
                variable.assign(value)
        return self.model

    def extra_repr(self) -> str:
        """Return what ``repr`` says of the model."""
        return f"gradtape: {self.model!r}"


class Part(torch.nn.Module):  # type: ignore[misc]
    """Holds parameters and buffers of a gradtape model under its name; PyTorch never calls it."""

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            "to_torch: a hook of a part of a gradtape model would never run, as PyTorch calls the "
            "model as a whole: register the hook on the whole module, or on a parameter"
        )

    register_forward_hook = register_forward_pre_hook = register_backward_hook = _refuse
    register_full_backward_hook = register_full_backward_pre_hook = _refuse


def _child(home: Any, name: str) -> Any:
    while name not in home._modules and hasattr(home, name):
        name += "_"
    if name not in home._modules:
        home.add_module(name, Part())
    return home._modules[name]


def _check_changes(changed: dict[str, Any], replayed: bool) -> None:
    """Raise if a call must not assign what it has assigned."""
    batched = [name for name, x in changed.items() if getattr(x, "batched", False)]
    if batched:
        raise NotImplementedError(
            f"to_torch: the call assigns {batched} inside torch.vmap: call it with the whole "
            "batch, or use eval()"
        )
    if changed and replayed:
        raise RuntimeError(
            "to_torch: a call in a backward pass, such as of torch.utils.checkpoint, starts from "
            f"other values of {list(changed)} than the first call, which assigned them, so that "
            "its gradients would be those of another result: use eval(), or make the checkpoint "
            "in the gradtape model with gradtape.recompute_grad"
        )


def _assign(pairs: Sequence[tuple[Any, Any]]) -> None:
    """Write arrays to buffers, in place as PyTorch's own layers do."""
    for x, array in pairs:
        wrapped = torch._C._functorch.is_functorch_wrapped_tensor(x)
        with torch.no_grad(), nullcontext() if wrapped else temporarily_clear_interpreter_stack():
            x.copy_(tensor_of(array))
