"""What is saved means what the Python code means at every size that it leaves open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from saved_modules import reloaded

import gradtape as gt
from gradtape.saving import SaveError

pytestmark = pytest.mark.usefixtures("forks")

BATCHES = (1, 2, 3, 7)


def sample(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def line_of(text: str) -> str:
    """Return FILE:LINE of the one line here that holds a text."""
    lines = Path(__file__).read_text().splitlines()
    (number,) = [i for i, line in enumerate(lines, 1) if text in line and "line_of(" not in line]
    return f"{Path(__file__).name}:{number}"


def slopes(function: Any, x: Any) -> list[Any]:
    """Return what a function gives, and its first and second gradients."""
    x = gt.constant(x)
    with gt.GradientTape() as outer:
        outer.watch(x)
        with gt.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
            target = gt.sum(gt.sin(y))
        first = inner.gradient(target, x)
        again = gt.sum(first * first)
    return [y.numpy(), first.numpy(), outer.gradient(again, x).numpy()]


def assert_alike(loaded: Any, module: Any, *sizes: int, width: int = 3) -> None:
    for n in sizes:
        x = sample(n, width)
        for got, want in zip(slopes(loaded, x), slopes(module, x), strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def called(module: Any, *shapes: tuple[int, ...]) -> Any:
    for shape in shapes:
        module(sample(*shape))
    return module


class Weighted(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = gt.Variable(sample(3))


# -- programs that ask for a size ------------------------------------------------------------------


class Branches(Weighted):
    def __call__(self, x: Any) -> Any:
        return x * self.w if x.shape[0] == 1 else x * self.w * 2.0  # the branch


class Chooses(Weighted):
    def __call__(self, x: Any) -> Any:
        return gt.where(x.shape[0] == 1, x * self.w, x * self.w * 2.0)


class MeanByHand(Weighted):
    def __call__(self, x: Any) -> Any:
        return gt.sum(x * x * self.w, axis=0) / x.shape[0]


class ZerosBeside(Weighted):
    def __call__(self, x: Any) -> Any:
        return gt.concatenate([gt.zeros((x.shape[0], 2)), x * self.w], axis=1) ** 2


class Recurrent(gt.Module):
    """An initial state of the batch's size, and a loop over the time."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = gt.Variable(sample(2, 2, seed=1)), gt.Variable(sample(1, 2))

    def __call__(self, x: Any) -> Any:
        state = gt.zeros((x.shape[0], 2))
        for i in range(x.shape[1]):
            state = gt.tanh(state @ self.inner + x[:, i : i + 1] @ self.outer)
        return state


class Scanned(Recurrent):
    def __call__(self, x: Any) -> Any:
        def step(state: Any, part: Any) -> Any:
            state = gt.tanh(state @ self.inner + part[:, None] @ self.outer)
            return state, state

        return gt.scan(step, gt.zeros((x.shape[0], 2)), gt.transpose(x))[1]


class Autoencoder(gt.Module):
    """A variational one."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = gt.layers.Dense(4), gt.layers.Dense(3)

    def __call__(self, x: Any, training: bool = False) -> Any:
        both = self.encoder(x)
        mean, spread = both[:, :2], gt.exp(both[:, 2:])
        noise = gt.random.normal(mean.shape)
        return self.decoder(mean + spread * noise)


@pytest.mark.parametrize("seen", [1, 4])
@pytest.mark.parametrize("cls", [Chooses, MeanByHand, ZerosBeside, Recurrent, Scanned])
def test_a_program_of_sizes_is_right_after_loading_at_every_batch(
    cls: Any, seen: int, tmp_path: Path
) -> None:
    module = called(cls(), (seen, 3))
    loaded = reloaded(module, tmp_path)
    assert_alike(loaded, module, *BATCHES)
    assert gt.saving.verify(tmp_path / "model.h5").ok


@pytest.mark.parametrize("seen", [1, 4])
def test_a_branch_on_the_batch_is_refused_with_its_line(seen: int, tmp_path: Path) -> None:
    module = called(Branches(), (seen, 3), (5, 3))
    with pytest.raises(SaveError, match="cannot be traced for unknown sizes") as caught:
        gt.save(module, tmp_path / "a.h5")
    assert line_of("# the branch") in str(caught.value)
    assert f'(float32[{seen}, 3]): gradtape.save(..., sizes="seen")' in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seen", [1, 4])
def test_a_variational_autoencoder_is_saved_and_draws_for_other_batches(
    seen: int, tmp_path: Path
) -> None:
    module = called(Autoencoder(), (seen, 3))
    gt.random.set_seed(5)
    gt.save(module, tmp_path / "a.h5")
    for n in BATCHES:
        loaded = gt.load(tmp_path / "a.h5")
        x = sample(n, 3)
        for training in (False, True):
            gt.random.set_seed(5)
            want = slopes(lambda x, t=training: module(x, training=t), x)
            gt.random.set_seed(5)  # which the loaded one draws from too
            got = slopes(lambda x, t=training: loaded(x, training=t), x)  # noqa: B023
            for a, b in zip(got, want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert gt.saving.verify(tmp_path / "a.h5").ok


def test_a_decorated_function_with_open_sizes_is_traced_in_the_same_way(tmp_path: Path) -> None:
    class Served(Weighted):
        @gt.function(input_signature=[gt.TensorSpec([None, 3])])
        def mean(self, x: Any) -> Any:
            return gt.sum(x * x * self.w, axis=0) / x.shape[0]

        @gt.function(input_signature=[gt.TensorSpec([None, None])])
        def grid(self, x: Any) -> Any:
            return x * x / (x.shape[0] + 2 * x.shape[1])

    module = Served()
    loaded = reloaded(module, tmp_path)
    assert_alike(loaded.mean, module.mean, *BATCHES)
    assert_alike(loaded.grid, lambda x: x * x / (x.shape[0] + 2 * x.shape[1]), *BATCHES)


def test_sizes_of_one_name_are_sampled_as_equal(tmp_path: Path) -> None:
    class Pairs(Weighted):
        @gt.function(input_signature=[gt.TensorSpec(["n", "n"]), gt.TensorSpec(["n"])])
        def f(self, x: Any, y: Any) -> Any:
            return (x @ y) / x.shape[1]

    gt.save(Pairs(), tmp_path / "a.h5")
    report = gt.saving.verify(tmp_path / "a.h5")
    assert [check.case for check in report.checks] == [f"x ({n}, {n}), y ({n},)" for n in (3, 2, 1)]
    assert report.ok


# -- what differs from the Python code -------------------------------------------------------------

FACTORS = {"1": 1.0, "2": 2.0, "3": 3.0}


def factor(x: Any, usual: float = 3.0) -> float:
    """Return what no trace can know: a table's entry for the size of the batch, as text."""
    return FACTORS.get(str(x.shape[0]), usual)


class Values(Weighted):
    def __call__(self, x: Any) -> Any:
        y = gt.sin(x)
        return y * self.w * factor(x)  # the table


class Shapes(Weighted):
    def __call__(self, x: Any) -> Any:
        return gt.tile(x * self.w, (1, int(factor(x))))


class Counts(gt.Module):
    def __call__(self, x: Any) -> Any:
        return gt.cast(gt.argmax(x, axis=1) * 0 + 1000, "int32") + int(factor(x))


class Dtypes(Weighted):
    def __call__(self, x: Any) -> Any:
        return (x * self.w).astype("float64" if factor(x) < 2.5 else "float32")


class Slopes(Weighted):
    def __call__(self, x: Any) -> Any:
        slope = factor(x)

        @gt.custom_gradient
        def scaled(x: Any) -> Any:
            return x * 1.0, lambda g: g * slope

        return scaled(x * self.w)


class State(Weighted):
    def __init__(self) -> None:
        super().__init__()
        self.total = gt.Variable(0.0, trainable=False)

    def __call__(self, x: Any) -> Any:
        self.total.assign_add(factor(x))
        return x * self.w


class Raises(Weighted):
    def __call__(self, x: Any) -> Any:
        rows = (-1, 3) if str(x.shape[0]) in FACTORS else (4, -1)
        return gt.reshape(x * self.w, rows)


class Training(Weighted):
    def __call__(self, x: Any, training: bool = False) -> Any:
        return x * self.w * (factor(x) if training else 1.0)


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (Values, r"x \(2, 3\) the trace does not give the output 0, .*output 0 at \[\d, \d\] is "),
        (Shapes, r"output 0.*float32\[2, 6\] .* in Python, float32\[2, 9\] .* in the trace"),
        (Dtypes, r"output 0.*float64\[2, 3\] .* in Python, float32\[2, 3\] .* in the trace"),
        (Counts, r"output 0 at \[0\] is 1002 in Python, 1003 in the trace"),
        (Slopes, r"not give the gradient of input 0, gradient of variable w of the Python code"),
        (State, r"variable total afterwards is 5 in Python, 6 in the trace"),
        (Raises, r"x \(3, 3\) the trace raises .*reshape.*, the Python code does not"),
        (Training, r"x \(2, 3\), training=True the trace does not give the output 0"),
    ],
)
def test_a_trace_that_differs_at_another_batch_is_refused_with_both_results(
    cls: Any, words: str, tmp_path: Path
) -> None:
    module = called(cls(), (4, 3))
    before = [v.numpy() for v in module.variables]
    with pytest.raises(SaveError, match=words) as caught:
        gt.save(module, tmp_path / "a.h5")
    assert f"module '{module.name}' ({cls.__name__}).__call__ (" in str(caught.value)
    assert not list(tmp_path.iterdir())
    for variable, value in zip(module.variables, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


def test_a_generator_that_a_function_makes_is_no_difference(tmp_path: Path) -> None:
    class Draws(Weighted):
        def __call__(self, x: Any) -> Any:
            generator = gt.random.Generator(3)
            generator.set_seed(3)
            return x + generator.normal(x.shape) * self.w

    module = called(Draws(), (4, 3))
    assert_alike(reloaded(module, tmp_path), module, *BATCHES)


def test_a_python_value_beside_the_tensors_is_compared(tmp_path: Path) -> None:
    class Told(Weighted):
        def __call__(self, x: Any) -> Any:
            return {"y": x * self.w, "kind": "few" if str(x.shape[0]) in FACTORS else "many"}

    words = r"\['many'\] beside tensors, where the Python code returns \['few'\]"
    with pytest.raises(SaveError, match=words):
        gt.save(called(Told(), (4, 3)), tmp_path / "a.h5")


def test_the_refusal_names_the_line_at_which_the_two_part(tmp_path: Path) -> None:
    with pytest.raises(SaveError, match="they part at op 'multiply'") as caught:
        gt.save(called(Values(), (4, 3)), tmp_path / "a.h5")
    assert line_of("# the table") in str(caught.value)


def test_the_refusal_names_the_last_line_where_a_step_was_left_out(tmp_path: Path) -> None:
    class Longer(Weighted):
        def __call__(self, x: Any) -> Any:
            y = x * self.w  # the last step
            return y if str(x.shape[0]) in FACTORS else y * 2.0

    with pytest.raises(SaveError, match="Python ends with op 'multiply'") as caught:
        gt.save(called(Longer(), (4, 3)), tmp_path / "a.h5")
    assert line_of("# the last step") in str(caught.value)


def test_the_size_that_was_seen_is_compared_too(tmp_path: Path) -> None:
    class Large(Weighted):
        def __call__(self, x: Any) -> Any:
            return x * self.w * {"9": 2.0}.get(str(x.shape[0]), 1.0)

    with pytest.raises(SaveError, match=r"for x \(9, 3\) the trace does not give the output 0"):
        gt.save(called(Large(), (9, 3)), tmp_path / "a.h5")


def test_axes_of_several_lengths_are_told_apart(tmp_path: Path) -> None:
    class Swapped(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([None, None])])
        def f(self, x: Any) -> Any:
            return x * {"(2, 3)": 2.0}.get(str(x.shape), 1.0)

    with pytest.raises(SaveError, match=r"for x \(2, 3\) the trace does not give the output 0"):
        gt.save(Swapped(), tmp_path / "a.h5")


def test_values_are_compared_where_a_gradient_cannot_be(tmp_path: Path) -> None:
    class HalfGradient(gt.Module):
        def __call__(self, x: Any) -> Any:
            @gt.custom_gradient
            def paired(x: Any) -> Any:
                def grad(g: Any) -> Any:  # it raises where the batch is odd
                    return gt.reshape(gt.reshape(g, (2, -1, 3)), (-1, 3))

                return x * {"3": 1.0}.get(str(x.shape[0]), 2.0), grad

            return paired(x)

    with pytest.raises(SaveError, match=r"x \(3, 3\) the trace does not give the output 0 of"):
        gt.save(called(HalfGradient(), (4, 3)), tmp_path / "a.h5")


def test_a_file_without_custom_gradients_is_compared_too(tmp_path: Path) -> None:
    with pytest.raises(SaveError, match="not give the gradient of input 0"):
        gt.save(called(Slopes(), (4, 3)), tmp_path / "a.h5", custom_gradients=False)


def test_a_batch_that_the_python_code_refuses_is_left_out(tmp_path: Path) -> None:
    class Pairs(Weighted):
        def __call__(self, x: Any) -> Any:
            return gt.sum(gt.reshape(x * self.w, (2, -1, 3)), axis=0)

    module = called(Pairs(), (4, 3))
    loaded = reloaded(module, tmp_path)
    assert_alike(loaded, module, 2, 4, 6)
    with pytest.raises(ValueError, match="reshape"):
        loaded(sample(3, 3))


def test_sizes_beside_the_batch_are_those_that_were_seen(tmp_path: Path) -> None:
    class Blurs(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kernel = gt.Variable(sample(5, 5, 1, 1))

        def __call__(self, x: Any) -> Any:  # images of less than 5 x 5 have no result
            return gt.nn.conv(x, self.kernel) * 1.0

    module = called(Blurs(), (2, 8, 9, 1), (1, 6, 7, 1))
    loaded = reloaded(module, tmp_path)
    x = sample(5, 10, 6, 1)
    np.testing.assert_allclose(loaded(x).numpy(), module(x).numpy(), rtol=1e-5)
    report = gt.saving.verify(tmp_path / "model.h5")
    assert [check.case for check in report.checks] == [f"x ({n}, 6, 7, 1)" for n in (3, 2, 1)]


def test_an_open_trace_of_a_function_is_compared_at_sizes_that_have_traces(tmp_path: Path) -> None:
    class Reads(gt.Module):
        @gt.function
        def f(self, x: Any) -> Any:  # images of less than 5 x 5 have no result
            return gt.nn.conv(x, gt.ones((5, 5, 1, 1))) * {"(9, 8)": 2.0}.get(
                str(x.shape[1:3]), 1.0
            )

    open_images = gt.TensorSpec([None, None, None, 1])
    module = Reads()
    module.f.get_concrete_function(open_images)
    gt.save(module, tmp_path / "a.h5")
    module = Reads()
    module.f(sample(2, 9, 8, 1))
    module.f.get_concrete_function(open_images)
    with pytest.raises(SaveError, match=r"for x \(3, 9, 8, 1\) the trace does not give"):
        gt.save(module, tmp_path / "a.h5")


def test_saving_leaves_no_trace_of_its_own_calls(tmp_path: Path) -> None:
    class Outer(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = MeanByHand()

        def __call__(self, x: Any) -> Any:
            return self.inner(x) * 2.0

    module = called(Outer(), (4, 3))
    seen, summary = module.inner.call_signatures(), module.summary()
    gt.save(module, tmp_path / "a.h5")
    assert module.inner.call_signatures() == seen
    assert module.summary() == summary


# -- for the sizes seen, on purpose ----------------------------------------------------------------


def test_sizes_seen_are_saved_on_request_and_others_refused_in_words(tmp_path: Path) -> None:
    module = called(Branches(), (1, 3), (4, 3))
    loaded = reloaded(module, tmp_path, sizes="seen")
    assert_alike(loaded, module, 1, 4)
    with pytest.raises(ValueError, match="saved for the sizes seen") as caught:
        loaded(sample(3, 3))
    message = str(caught.value)
    assert message.startswith("__call__: got float32[3, 3], but was saved for the sizes seen")
    assert "float32[1, 3] or float32[4, 3]" in message
    assert 'gradtape.save(..., sizes="open")' in message
    with pytest.raises(TypeError, match="no saved trace takes"):
        loaded(sample(4, 3, dtype="complex64"))


def test_a_file_says_that_it_is_for_the_sizes_seen_and_says_it_again(tmp_path: Path) -> None:
    path, again = tmp_path / "model.h5", tmp_path / "again.h5"
    gt.save(called(Branches(), (4, 3)), path, sizes="seen")
    gt.save(gt.load(path), again)
    for file in (path, again):
        with h5py.File(file) as held:
            (record,) = json.loads(held["manifest"][()])["functions"]
        assert record["sizes"] == "seen"
        assert "branches.__call__ (saved for the sizes seen)" in gt.saving.inspect_text(file)
        assert gt.saving.verify(file).ok
        with pytest.raises(ValueError, match="saved for the sizes seen"):
            gt.load(file)(sample(2, 3))


def test_open_sizes_are_nothing_that_a_file_speaks_of(tmp_path: Path) -> None:
    gt.save(called(MeanByHand(), (4, 3)), tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as held:
        assert "sizes" not in json.loads(held["manifest"][()])["functions"][0]
    assert "sizes seen" not in gt.saving.inspect_text(tmp_path / "a.h5")


def test_a_layers_function_that_needs_its_sizes_is_refused_or_saved_for_those_seen(
    tmp_path: Path,
) -> None:
    def scaled(x: Any) -> Any:
        return x / float(x.shape[0])  # the scale

    layer = called(gt.layers.Dense(2, activation=scaled), (4, 3))
    with pytest.raises(SaveError, match="activation cannot be traced for unknown sizes") as caught:
        gt.save(layer, tmp_path / "a.h5")
    assert line_of("# the scale") in str(caught.value)
    loaded = reloaded(layer, tmp_path, sizes="seen")
    assert_alike(loaded, layer, 4)
    with pytest.raises(ValueError, match=r"scaled: .* saved for the sizes seen"):
        loaded(sample(3, 3))


def test_a_part_that_is_called_by_itself_is_refused_as_a_whole_module_is(tmp_path: Path) -> None:
    holder = gt.Module("holder")
    holder.part = called(Branches(), (4, 3))
    with pytest.raises(SaveError, match=r"'branches'.* cannot be traced for unknown sizes"):
        gt.save(holder, tmp_path / "a.h5")
    loaded = reloaded(holder, tmp_path, sizes="seen")
    assert_alike(loaded.part, holder.part, 4)


def test_inputs_of_one_batch_may_rely_on_it(tmp_path: Path) -> None:
    class Pair(gt.Module):
        def __call__(self, x: Any, y: Any) -> Any:
            assert x.shape[0] == y.shape[0], "one batch"
            return gt.concatenate([x, y], axis=1) / x.shape[0]

    module = Pair()
    module(sample(4, 2), sample(4, 3))
    gt.save(module, tmp_path / "pair.h5")
    loaded = gt.load(tmp_path / "pair.h5")
    for n in (1, 2, 7):
        x, y = sample(n, 2), sample(n, 3)
        np.testing.assert_array_equal(loaded(x, y), module(x, y))
    with pytest.raises(ValueError, match="batch"):
        loaded(sample(2, 2), sample(3, 3))


def test_sizes_is_open_or_seen(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='sizes must be "open" or "seen", got \'any\''):
        gt.save(gt.Module(), tmp_path / "a.h5", sizes="any")


@pytest.mark.parametrize("spec", [[None, 3], [4, None], [None, None], None], ids=str)
@pytest.mark.parametrize("sizes", ["open", "seen"])
def test_a_trace_around_a_loaded_function_checks_in_each_run_what_it_left_open(
    sizes: str, spec: Any, tmp_path: Path
) -> None:
    module = called(MeanByHand(), (4, 3))
    loaded = reloaded(module, tmp_path, sizes=sizes)
    around = gt.function(lambda x: loaded(x) * 2.0, input_signature=[gt.TensorSpec(spec)])
    assert_alike(around, lambda x: module(x) * 2.0, 4)
    wrong = [(4, 2), (3, 4), (4, 3, 1), (12,)]
    if sizes == "open" and spec != [4, None]:
        assert_alike(around, lambda x: module(x) * 2.0, *BATCHES)
    else:
        wrong += [(2, 3), (1, 3)]
    for shape in wrong:
        with pytest.raises(ValueError, match=r"around|reshape|transpose|lambda"):
            around(sample(*shape))


def test_a_trace_that_leaves_open_which_of_the_sizes_seen_it_has_is_refused(tmp_path: Path) -> None:
    module = called(Branches(), (1, 3), (4, 3))
    loaded = reloaded(module, tmp_path, sizes="seen")
    around = gt.function(loaded, input_signature=[gt.TensorSpec([None, 3])])
    with pytest.raises(TypeError, match="several saved traces may take"):
        around(sample(4, 3))
    around = gt.function(loaded, input_signature=[gt.TensorSpec([4, 3])])
    assert_alike(around, module, 4)


# -- dtypes and ranks are part of the signature ----------------------------------------------------


class ByDtype(gt.Module):
    def __call__(self, x: Any) -> Any:
        return x * 2.0 if x.dtype == "float32" else x * 3.0


class ByRank(gt.Module):
    def __call__(self, x: Any) -> Any:
        return x * 2.0 if x.ndim == 2 else x * 3.0


@pytest.mark.parametrize(("cls", "dtype"), [(ByDtype, "float64"), (ByRank, "complex64")])
def test_a_branch_on_dtype_or_rank_is_for_what_was_seen_and_other_is_refused(
    cls: Any, dtype: str, tmp_path: Path
) -> None:
    module = called(cls(), (4, 3))
    loaded = reloaded(module, tmp_path)
    assert_alike(loaded, module, *BATCHES)
    with pytest.raises(TypeError, match=rf"must be float32\[\?, 3\], got dtype {dtype}; cast it"):
        loaded(sample(4, 3, dtype=dtype))
    with pytest.raises(ValueError, match=r"must be float32\[\?, 3\], got float32\[4\]"):
        loaded(sample(4))
    module(sample(4, 3, dtype="float64"))
    module(sample(4))
    loaded = reloaded(module, tmp_path)
    for x in (sample(2, 3), sample(2, 3, dtype="float64"), sample(5)):
        want = module(gt.constant(x))
        np.testing.assert_array_equal(loaded(x).numpy(), want.numpy())
    with pytest.raises(TypeError, match="no saved trace takes"):
        loaded(sample(1, 2, 3))


def test_a_branch_on_a_rank_that_is_open_is_refused(tmp_path: Path) -> None:
    class AnyRank(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec(None)])
        def f(self, x: Any) -> Any:
            return x * 2.0 if x.ndim == 2 else x * 3.0  # the rank

    with pytest.raises(SaveError) as caught:
        gt.save(AnyRank(), tmp_path / "a.h5")
    assert "f cannot be traced" in str(caught.value)
    assert line_of("# the rank") in str(caught.value)
