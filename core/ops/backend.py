"""``Backend``: the base class of the owners of array types.

Two more base classes are for what a backend returns: a ``Sender`` copies arrays from host memory to
a device while the device may be computing, and a ``Stopwatch`` measures steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from ..errors import BackendUnavailable
from .promotion import promoting, unboolean

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Backend:
    """Base class of backends: subclass it, and return an instance from ``gradtape_backends``.

    Attributes
    ----------
    name
        The name that users select, for instance ``"numpy"``.
    array_module
        The module or package that defines the backend's array types, or a tuple of some; see
        :meth:`owns`.

    Examples
    --------
    >>> from gradtape.plugin import Backend
    >>> class Strict(Backend):
    ...     name = array_module = "array_api_strict"
    ...
    ...     @property
    ...     def xp(self):
    ...         import array_api_strict
    ...
    ...         return array_api_strict
    ...
    ...     def asarray(self, value, dtype=None, device=None):
    ...         return self.xp.asarray(np.array(value, dtype=dtype))
    ...
    ...     def to_numpy(self, array):
    ...         return np.from_dlpack(array)
    >>> Strict().device(np.ones(2))
    'cpu'
    """

    name: str = ""
    array_module: str | tuple[str, ...] = ""
    #: Whether its arrays are NumPy's, in host memory: new tensors are made there by default.
    host: bool = False
    #: The array type with which Python scalars are converted to arrays and cached; None if scalars
    #: stay Python numbers.
    scalar_array_type: type | None = None
    #: Returns a context for an array in which its operators behave as ops do; None if they always
    #: do.
    scope: Callable[[Any], AbstractContextManager[Any]] | None = None
    #: Whether reading a value makes the host wait for a device: kernels then use code that works
    #: for all values.
    waits: bool = False
    #: Whether the library's functions promote dtypes as NumPy's do, booleans and integers with
    #: floating numbers included; otherwise :meth:`bind` casts their operands.
    promotes: bool = False
    provider: Any = None

    _gradtape_internal = "provider"

    @property
    def xp(self) -> Any:
        """The array namespace that kernels are bound to; imported on first use.

        Raises
        ------
        BackendUnavailable
            If the library or the device is missing; the message says what to install.
        """
        raise NotImplementedError

    @property
    def settles(self) -> bool:
        """Whether :meth:`settle` does anything."""
        return type(self).settle is not Backend.settle

    @property
    def updates(self) -> bool:
        """Whether :meth:`updating` does anything."""
        return type(self).updating is not Backend.updating

    @property
    def special(self) -> Any:
        """The library's module with the functions of ``scipy.special``: ``erf``, ``erfc``,
        ``gammaln``, ``digamma``, ``polygamma``; None if there is no such module.

        By default it is ``special`` of the array namespace.

        Raises
        ------
        ImportError
            If a package that has them is not installed.
        """
        return getattr(self.xp, "special", None)

    def owns(self, array_type: type) -> bool:
        """Return whether this backend owns arrays of a type.

        Parameters
        ----------
        array_type
            A type whose backend is not known yet.

        Returns
        -------
        bool
            By default, whether the type is defined in ``array_module``.
        """
        home, mine = f"{array_type.__module__}.", self.array_module
        return any(home.startswith(f"{x}.") for x in (mine if isinstance(mine, tuple) else (mine,)))

    def unavailable(self) -> str | None:
        """Return why the backend cannot be used here, or ``None`` if it can."""
        try:
            self.xp  # noqa: B018 - to try the import
        except BackendUnavailable as error:
            return str(error)
        except Exception as error:  # a broken library must not break the other backends
            return f"backend {self.name!r}: {type(error).__name__}: {error}"
        return None

    def sender(self, device: str | None = None) -> Sender:
        """Return a sender, which copies arrays from host memory to a device that may be computing.

        Parameters
        ----------
        device
            The device, without the backend's name; the default one if not given.

        Returns
        -------
        Sender
            By default, one that copies with :meth:`asarray`.
        """
        return Sender(self, device)

    def diagnosis(self) -> dict[str, Any]:
        """Return what ``gradtape doctor`` reports about the backend's hardware and libraries.

        Returns
        -------
        dict
            JSON values: ``"lines"`` to print, ``"advice"``, and the data behind them. Empty by
            default. This method must not raise.
        """
        return {}

    def asarray(self, value: Any, dtype: Any = None, device: str | None = None) -> Any:
        """Return ``value`` (a NumPy array, a number, nested lists) as a new array.

        Parameters
        ----------
        value
            The value, in host memory, or an array of this backend.
        dtype
            The dtype, if not the value's own.
        device
            The device, if not the backend's default.

        Returns
        -------
        array
            An array of the backend's type.
        """
        raise NotImplementedError

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """Return the array's value in host memory, sharing memory if possible.

        Parameters
        ----------
        array
            An array of this backend.

        Returns
        -------
        numpy.ndarray
            The value, of the same shape and dtype.
        """
        raise NotImplementedError

    def device(self, array: Any) -> str:
        """Return the device of ``array``, as in ``tensor.to("<backend>:<device>")``.

        Parameters
        ----------
        array
            An array of this backend.

        Returns
        -------
        str
            The device without the backend's name; ``"cpu"`` by default.
        """
        return "cpu"

    def shape_witness(self, array: Any) -> Any:
        """Return an array of the same shape and dtype that does not keep ``array``'s memory alive.

        Parameters
        ----------
        array
            An array of this backend.

        Returns
        -------
        array
            An array whose values do not matter; ``array`` itself by default.
        """
        return array

    def weak_scalar(self, value: Any, dtype: Any) -> Any:
        """Return a Python scalar as an array that promotes with ``dtype`` as the scalar would.

        Parameters
        ----------
        value
            A Python number.
        dtype
            The dtype of the array that it is combined with.

        Returns
        -------
        array
            An array without axes; the number itself by default.
        """
        return value

    def compile(self, program: Any, arrays: Sequence[Any]) -> Callable[..., list[Any]] | None:
        """Return a function that runs a traced program on this backend's arrays.

        It reads variables (``variable.array``) when it runs. At the very end, it checks the shapes
        that the trace did not know (``variable.check_shape``) and assigns the program's
        ``updates`` (``set_arrays``), so that an error leaves all variables unchanged.

        Parameters
        ----------
        program
            A graph: its ``nodes`` in order, ``inputs``, ``constants``, ``outputs`` and ``updates``.
        arrays
            The arrays of the first call.

        Returns
        -------
        callable or None
            ``run(arrays) -> list of arrays``. Its optional attribute ``explain`` is a function that
            returns the text for ``fn.explain()``, and ``watched`` is a function that runs the
            program and reports its steps to ``gt.profile()``. None, the default, leaves the program
            to the plain executor.
        """
        return None

    def updating(self, formula: Any) -> Callable[..., Sequence[Any] | None] | None:
        """Return a function that runs an optimizer's formula on the arrays of many variables.

        A library that takes long for each call can so run a whole update at once. A backend that
        does not override this method is never asked.

        Parameters
        ----------
        formula
            An elementwise formula, hashable. All arrays have the ``dtype``: the value, the state,
            and last the gradient are ``arrays`` in all. After them come ``settings`` Python floats,
            which change with each step. ``steps`` are pairs of a NumPy ufunc and its inputs. An
            integer among these is the place of an array or a setting, counted from 0, or, after
            them, of an earlier step's result; a float is a constant. ``results`` are the places of
            the new value and the new state.

        Returns
        -------
        callable or None
            ``run(flat, gradients, settings)``, which returns new flat arrays for the value and the
            state. ``flat`` are the old ones, and the gradients, of any shapes, belong to one part
            after another. It returns None for arrays that it cannot take; what it returns, and
            None instead of the function, means that the formula runs as it is written.
        """
        return None

    def guarded(self, kernel: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Return a kernel as ops call it: on its arrays' device, and with readable errors.

        Parameters
        ----------
        kernel
            A function of this backend's arrays and an op's parameters: a portable kernel bound by
            :meth:`bind`, or a plugin's kernel.
        name
            The op's name.

        Returns
        -------
        callable
            A function of the same arguments; ``kernel`` itself by default.
        """
        return kernel

    def on_host(
        self,
        function: Callable[..., tuple[NDArray[Any], ...]],
        arrays: Sequence[Any],
        results: Sequence[tuple[Any, Any]],
    ) -> list[Any]:
        """Call a function of NumPy arrays, which a kernel of another library has.

        Parameters
        ----------
        function
            A function of NumPy arrays that returns a tuple of NumPy arrays.
        arrays
            Arrays of this backend, all on one device.
        results
            The shape and dtype of each result.

        Returns
        -------
        list of arrays
            The results on the device of ``arrays``. By default, the arrays are copied to host
            memory and the results back. A backend that compiles lets its programs call the
            function.
        """
        device = self.device(arrays[0])
        found = function(*map(self.to_numpy, arrays))
        return [self.asarray(y, device=device) for y in found]

    def settle(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return arrays that a step has computed, and that later steps begin from.

        It is called with the new values of variables before they are assigned: those of one
        optimizer's step together, and in a traced step also its outputs. A library that computes
        lazily computes them here, so that what they are computed from does not grow with each
        step. A backend that does not override this method is never asked.

        Parameters
        ----------
        arrays
            Arrays of this backend.

        Returns
        -------
        sequence of arrays
            The same values, of the same shapes and dtypes; by default ``arrays`` themselves.
        """
        return arrays

    def stopwatch(self) -> Stopwatch:
        """Return a stopwatch, which measures the steps of this backend.

        Returns
        -------
        Stopwatch
            By default, one that uses the host's clock.
        """
        return Stopwatch()

    def kernel(self, op: Any, portable: Callable[..., Any]) -> Callable[..., Any]:
        """Return what computes an op on this backend's arrays, if no plugin has a kernel for it.

        Parameters
        ----------
        op
            The op.
        portable
            The op's own kernel as a function of this backend's arrays, from :meth:`bind`.

        Returns
        -------
        callable
            A function of the same arguments; ``portable`` itself by default. A backend may compute
            the same in another way, for instance as one launch.
        """
        return portable

    def bind(self, kernel: Any) -> Any:
        """Return a portable kernel as a function of this backend's arrays.

        Parameters
        ----------
        kernel
            The name of a function in the array namespace (with dots for a module in it), or
            ``kernel(xp, *arrays, **params)``.

        Returns
        -------
        callable
            ``function(*arrays, **params)``. Operands of NumPy's elementwise functions are cast as
            NumPy casts them, unless the library ``promotes`` by itself.

        Raises
        ------
        AttributeError
            If the namespace has no function of that name.
        """
        xp = self.xp
        if isinstance(kernel, str):
            target = xp
            for part in kernel.split("."):
                target = getattr(target, part)
            return target if self.promotes else promoting(xp, kernel, target)

        def bound(*arrays: Any, **params: Any) -> Any:
            return kernel(xp, *arrays, **params)

        def bound_to_numbers(*arrays: Any, **params: Any) -> Any:
            if bool in map(type, arrays):
                arrays = unboolean(arrays)
            return kernel(xp, *arrays, **params)

        return bound if self.promotes else bound_to_numbers


class Sender:
    """Copies arrays to a device; in this base class the copy is done when :meth:`send` returns.

    A backend whose device computes while Python continues returns its own from
    ``Backend.sender``.

    Parameters
    ----------
    backend
        The device's backend.
    device
        The device, without the backend's name.

    Examples
    --------
    >>> from gradtape.plugin import Sender
    >>> sender = Sender(gt.registry().backend("numpy"), None)
    >>> sender.take(sender.send(np.ones(2))).tolist()
    [1.0, 1.0]
    """

    def __init__(self, backend: Backend, device: str | None) -> None:
        self.backend, self.device = backend, device

    def send(self, value: Any) -> Any:
        """Start to copy a NumPy array, and return the argument for :meth:`take`."""
        return self.backend.asarray(value, device=self.device)

    def take(self, sent: Any) -> Any:
        """Return the array that was sent: kernels that start from now on see all of it."""
        return sent

    def mark(self) -> None:
        """Note that only kernels already queued on the device use arrays that were taken before."""


class Stopwatch:
    """Measures steps with the host's clock, which is right if calls return after the computation.

    A backend whose device computes while Python continues has its own: ``Backend.stopwatch``.
    Steps may be nested.

    Attributes
    ----------
    clock
        The name of the clock, for tables.

    Examples
    --------
    >>> from gradtape.plugin import Stopwatch
    >>> watch = Stopwatch()
    >>> start = watch.start("acme step")
    >>> watch.seconds(start, watch.stop(None)) >= 0
    True
    """

    clock = "host"

    def start(self, name: str) -> Any:
        """Return the start time of a step called ``name``."""
        return perf_counter_ns()

    def stop(self, result: Any) -> Any:
        """Return the end time of the step that began last, which computed ``result``."""
        return perf_counter_ns()

    def settle(self) -> None:
        """Wait until all steps have ended; called once, before the first :meth:`seconds`."""

    def seconds(self, start: Any, stop: Any) -> float:
        """Return the seconds between two times."""
        return float(stop - start) / 1e9
