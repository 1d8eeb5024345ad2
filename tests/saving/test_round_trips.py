"""What is saved comes back: trees, values, functions, in this process and in a fresh one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh_process import assert_same_bits, probe, probe_isolated, run_isolated
from saved_modules import Affine, reloaded

import gradtape as gt

pytestmark = pytest.mark.usefixtures("forks")

DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
    "float16 float32 float64 complex64 complex128"
).split()


# -- modules that were called but never decorated --------------------------------------------------


def test_an_undecorated_module_is_traced_for_any_batch_with_training_on_and_off(
    tmp_path: Path,
) -> None:
    module = Affine(4, 3)
    module(np.ones((2, 4), "float32"))
    loaded = reloaded(module, tmp_path)
    for batch in (1, 5):
        x = np.random.default_rng(batch).standard_normal((batch, 4)).astype("float32")
        for training in (False, True):
            call = ("__call__", [x], {"training": training})
            (found,) = probe_isolated(tmp_path / "model.h5", [call])
            assert_same_bits(found, probe(module, *call))
    assert loaded.seen.numpy() == 0
    loaded(np.ones((1, 4), "float32"), training=True)
    loaded(np.ones((1, 4), "float32"))
    assert loaded.seen.numpy() == 1


def test_calls_of_several_ranks_dtypes_and_python_arguments_are_all_saved(tmp_path: Path) -> None:
    class Power(gt.Module):
        def __call__(self, x: Any, n: int = 2, *, flip: bool = False) -> Any:
            y = x**n
            return -y if flip else y

    module = Power()
    module(np.ones(3, "float32"))
    module(np.ones((3, 1), "float64"), 3)
    module(np.ones((3, 1), "float64"), 3, flip=True)
    loaded = reloaded(module, tmp_path)
    assert loaded(np.float32([2, 3])).numpy().tolist() == [4.0, 9.0]
    assert loaded(np.float64([[2]]), n=3).numpy().tolist() == [[8.0]]
    assert loaded(np.float64([[2]]), 3, flip=True).numpy().tolist() == [[-8.0]]
    with pytest.raises(TypeError, match="no saved trace takes"):
        loaded(np.float32([2]), 7)


def test_containers_go_in_and_come_out(tmp_path: Path) -> None:
    class Pairs(gt.Module):
        def __call__(self, pair: Any, scale: Any = (1.0, 2.0)) -> Any:
            a, b = pair["a"], pair["b"][0]
            return {"sum": a + b * scale[1], "all": [a, (b, None)], "note": "text", "none": None}

    module = Pairs()
    x = np.float32([1, 2])
    module({"a": x, "b": [x]})
    result = reloaded(module, tmp_path)({"a": x, "b": [x * 2]})
    assert result["note"] == "text"
    assert result["none"] is None
    assert result["sum"].numpy().tolist() == [5.0, 10.0]
    assert type(result["all"]) is list
    assert type(result["all"][1]) is tuple
    assert result["all"][1][1] is None


def test_a_module_that_was_never_called_is_saved_without_functions_if_at_all(
    tmp_path: Path,
) -> None:
    with pytest.raises(gt.saving.SaveError, match=r"'affine' \(Affine\) was never called.*Call it"):
        reloaded(Affine(2, 2), tmp_path)
    loaded = reloaded(Affine(2, 2), tmp_path, functions=False)
    with pytest.raises(
        TypeError, match=r"'affine', saved from class Affine, has no '__call__' \(s"
    ):
        loaded(np.ones((1, 2), "float32"))


def test_saving_leaves_the_module_as_it_was(tmp_path: Path) -> None:
    module = Affine(2, 2)
    module(np.ones((5, 2), "float32"))
    before = ([v.numpy().copy() for v in module.variables], module.call_signatures())
    gt.save(module, tmp_path / "a.h5")
    gt.save(module, tmp_path / "b.h5")
    assert_same_bits([v.numpy() for v in module.variables], before[0])
    assert module.call_signatures() == before[1]
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


# -- decorated functions ---------------------------------------------------------------------------


def test_a_function_of_unknown_rank_runs_at_several_ranks_in_a_fresh_process(
    tmp_path: Path,
) -> None:
    class Waves(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = gt.Variable(0.5)

        @gt.function(input_signature=[gt.TensorSpec(None)])
        def f(self, x: Any) -> Any:
            return gt.sum(gt.sin(x * self.w) * x)

    module = Waves()
    gt.save(module, tmp_path / "waves.h5")
    shapes = [(), (4,), (2, 3), (1, 2, 2), (0, 3)]
    calls = [
        ("f", [np.random.default_rng(1).standard_normal(s).astype("float32")], {}) for s in shapes
    ]
    for call, found in zip(calls, probe_isolated(tmp_path / "waves.h5", calls), strict=True):
        assert_same_bits(found, probe(module, *call))


def test_every_trace_of_a_function_is_saved_with_keywords_defaults_and_static_arguments(
    tmp_path: Path,
) -> None:
    class Tools(gt.Module):
        @gt.function
        def scaled(self, x: Any, factor: float = 2.0, *, mode: str = "up") -> Any:
            return x * factor if mode == "up" else x / factor

        @gt.function
        def never(self, x: Any) -> Any:
            return x

    module = Tools()
    for shape in ((2,), (3, 1)):
        x = np.ones(shape, "float32")
        module.scaled(x)
        module.scaled(x, 4.0)
        module.scaled(x, factor=4.0, mode="down")
    loaded = reloaded(module, tmp_path)
    x = np.float32([1, 3])
    assert loaded.scaled(x).numpy().tolist() == [2.0, 6.0]
    assert loaded.scaled(x, factor=4.0).numpy().tolist() == [4.0, 12.0]
    assert loaded.scaled(x=x, factor=4.0, mode="down").numpy().tolist() == [0.25, 0.75]
    assert len(loaded.scaled.concrete_functions) == 6
    with pytest.raises(TypeError, match="scaled: no saved trace takes"):
        loaded.scaled(x, 5.0)
    with pytest.raises(TypeError, match="scaled: got an unexpected keyword argument 'bogus'"):
        loaded.scaled(x, bogus=1)
    with pytest.raises(AttributeError, match=r"has no 'never' \(no input_signature"):
        loaded.never(x)
    assert "never: not in the file" in gt.saving.inspect_text(tmp_path / "model.h5")


def test_assignments_in_a_function_happen_after_loading_too(tmp_path: Path) -> None:
    class Counter(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = gt.Variable(1.0)
            self.b = gt.Variable(10.0)
            self.count = gt.Variable(0)

        @gt.function(input_signature=[gt.TensorSpec([])])
        def step(self, x: Any) -> Any:
            self.a.assign(x)  # nobody sees this value
            self.b.assign_add(x)
            self.a.assign(self.b * 2.0)
            self.count.assign_add(1)
            return self.a + self.count

    module = Counter()
    loaded = reloaded(module, tmp_path)
    again = reloaded(loaded, tmp_path)
    for m in (module, loaded, again):
        assert [m.step(1.0).item(), m.step(2.0).item()] == [23.0, 28.0]
        assert [v.item() for v in m.variables] == [26.0, 13.0, 2]


def test_constants_of_every_dtype_layout_and_size_are_kept(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    arrays = [
        np.asfortranarray(random.standard_normal((3, 4))),
        random.standard_normal((5, 6)).astype("float32")[::2, ::3],
        np.array(7.5),
        np.zeros((0, 3), "float32"),
        np.arange(4).astype(">i4").reshape(2, 2),
        np.array([True, False]),
        np.float16([1, np.inf, np.nan]),
        np.complex64([1 + 2j]),
    ]

    class Constants(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([], "float64")])
        def f(self, x: Any) -> Any:
            return [x * 1.0, *[gt.where(True, gt.constant(a), gt.constant(a)) for a in arrays]]

    found = reloaded(Constants(), tmp_path).f(1.0)
    for got, want in zip(found[1:], arrays, strict=True):
        assert got.shape == want.shape
        np.testing.assert_array_equal(got.numpy(), want)


def test_signatures_come_back_by_name_and_survive_a_second_save(tmp_path: Path) -> None:
    outside = gt.Variable([2.0, 3.0], name="outside")

    @gt.function(input_signature=[gt.TensorSpec([None])])
    def serve(x: Any) -> Any:
        return gt.sum(x) * outside

    @gt.function
    def called(x: Any, y: Any) -> Any:
        return x - y

    called(gt.constant(1.0), y=gt.constant(2.0))
    concrete = called.get_concrete_function(gt.TensorSpec([]), gt.TensorSpec([]))
    given = {"serve": serve, "called": called, "concrete": concrete}
    loaded = reloaded(Affine(2, 2), tmp_path, signatures=given)
    again = reloaded(loaded, tmp_path)
    for module in (loaded, again):
        assert sorted(module.signatures) == ["called", "concrete", "serve"]
        assert module.signatures["serve"]([1.0, 2.0]).numpy().tolist() == [6.0, 9.0]
        assert module.signatures["called"](gt.constant(5.0), y=gt.constant(2.0)).item() == 3.0
        assert module.signatures["concrete"](5.0, 2.0).item() == 3.0
        assert [v.shape for v in module.variables] == [(), (2,), (2, 2)]  # not what is outside
    text = gt.saving.inspect_text(tmp_path / "model.h5")
    assert "signatures.serve" in text


def test_a_variable_outside_the_tree_is_shared_between_functions(tmp_path: Path) -> None:
    outside = gt.Variable(1.0)

    class Outer(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([])])
        def add(self, x: Any) -> Any:
            outside.assign_add(x)
            return x * 1.0

        @gt.function(input_signature=[])
        def get(self) -> Any:
            return outside * 2.0

    loaded = reloaded(Outer(), tmp_path)
    loaded.add(4.0)
    assert loaded.get().item() == 10.0
    assert outside.numpy() == 1.0


def test_one_method_may_be_saved_under_two_names(tmp_path: Path) -> None:
    class One(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([])])
        def f(self, x: Any) -> Any:
            return x + 1.0

    module = One()
    loaded = reloaded(module, tmp_path, signatures={"serve": module.f})
    assert loaded.signatures["serve"] is loaded.f


def test_random_numbers_from_a_generator_in_the_module_go_on_where_they_were(
    tmp_path: Path,
) -> None:
    class Noisy(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = gt.layers.Dropout(0.5, seed=3)

        def __call__(self, x: Any, training: bool = True) -> Any:
            return self.layer(x, training=training)

    module = Noisy()
    x = np.ones((4, 8), "float32")
    module(x)
    loaded = reloaded(module, tmp_path)
    for _ in range(3):
        assert_same_bits([loaded(x).numpy()], [module(x).numpy()])


# -- trees -----------------------------------------------------------------------------------------


def test_the_tree_of_an_unknown_class_comes_back(tmp_path: Path) -> None:
    shared, block = gt.Variable([1.0, 2.0]), Affine(1, 1)

    class Root(gt.Module):
        def __init__(self) -> None:
            super().__init__(name="my_root")
            self.shared = shared
            self.blocks = [block, {"again": block, "more": (Affine(2, 1, 1), shared, [])}]
            self.parent_of = block
            self.rate = 0.1
            self.label = "déjà vu"
            self.number = 3 + 4j
            self.flags = [True, None, -0.0, float("inf")]
            self.empty: dict[str, Any] = {}
            self.nothing = None
            self.hidden = object()
            self.array = np.ones(3)
            self.f = lambda x: x
            self.by_number = {1: "kept too", "kept": 2}

    module = Root()
    block.up = module  # a cycle
    with pytest.warns(UserWarning, match=r"my_root\.hidden \(an object of class object\)\. Files"):
        once = reloaded(module, tmp_path, functions=False)
    loaded = reloaded(once, tmp_path)
    assert loaded.name == "my_root"
    assert loaded.class_name == "Root"
    assert list(loaded.named_variables) == list(module.named_variables)
    assert_same_bits([v.numpy() for v in loaded.variables], [v.numpy() for v in module.variables])
    assert [v.trainable for v in loaded.variables] == [v.trainable for v in module.variables]
    first = loaded.blocks[0]
    assert first is loaded.parent_of is loaded.blocks[1]["again"]
    assert first.up is loaded
    assert loaded.blocks[1]["more"][1] is loaded.shared
    assert type(loaded.blocks[1]["more"]) is tuple
    assert loaded.blocks[1]["more"][2] == []
    assert (loaded.rate, loaded.label, loaded.number) == (0.1, "déjà vu", 3 + 4j)
    assert str(loaded.flags) == "[True, None, -0.0, inf]"
    assert loaded.empty == {}
    assert loaded.nothing is None
    assert loaded.by_number == {1: "kept too", "kept": 2}
    assert_same_bits([loaded.array], [module.array])
    for name in ("hidden", "f"):
        with pytest.raises(AttributeError, match=rf"has no '{name}' \(.* cannot be stored"):
            getattr(loaded, name)
    assert "Root" in repr(loaded)


@pytest.mark.parametrize("dtype", DTYPES)
def test_variables_of_every_dtype_keep_their_bits(dtype: str, tmp_path: Path) -> None:
    module = gt.Module(name="m")
    random = np.random.default_rng(0)
    base = random.integers(0, 2, (3, 4)) if dtype == "bool" else random.standard_normal((3, 4)) * 9
    module.matrix = gt.Variable(np.asfortranarray(np.abs(base).astype(dtype)), name="m")
    module.scalar = gt.Variable(np.array(1, dtype))
    module.empty = gt.Variable(np.zeros((0, 2), dtype))
    loaded = reloaded(module, tmp_path)
    assert_same_bits([v.numpy() for v in loaded.variables], [v.numpy() for v in module.variables])
    assert loaded.matrix.name == "m"
    assert loaded.matrix.array.dtype is np.dtype(dtype)  # what fast paths test for


def test_special_values_keep_their_bits(tmp_path: Path) -> None:
    module = gt.Module(name="m")
    bits = np.array([0x7FC00001, 0xFFC00000, 0x80000000, 0x7F800000, 0x00000001], "uint32")
    module.v = gt.Variable(bits.view("float32"))
    assert_same_bits([reloaded(module, tmp_path).v.numpy()], [module.v.numpy()])


def test_a_thousand_variables_are_no_trouble(tmp_path: Path) -> None:
    module = gt.Module(name="m")
    module.many = [gt.Variable(float(i)) for i in range(1000)]
    loaded = reloaded(module, tmp_path)
    assert [v.item() for v in loaded.many] == list(range(1000))


def test_large_gradients_are_thinned_in_the_golden_vectors(tmp_path: Path) -> None:
    class Wide(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = gt.Variable(np.arange(200_000.0, dtype="float32"))

        @gt.function(input_signature=[gt.TensorSpec([])])
        def f(self, x: Any) -> Any:
            return gt.sum(gt.sin(self.w * x))

    gt.save(Wide(), tmp_path / "wide.h5")
    assert (tmp_path / "wide.h5").stat().st_size < 1.3 * 800_000
    assert gt.saving.verify(tmp_path / "wide.h5").ok


def test_loading_does_not_need_the_path_as_a_string(tmp_path: Path) -> None:
    module = gt.Module(name="m")
    module.v = gt.Variable(1.0)
    gt.save(module, str(tmp_path / "a.h5"))
    assert gt.load(str(tmp_path / "a.h5")).v.item() == 1.0


def test_a_file_is_loaded_on_the_current_backend(tmp_path: Path) -> None:
    module = Affine(2, 2)
    gt.save(module, tmp_path / "a.h5", functions=False)
    with gt.backend("numpy"):
        assert type(gt.load(tmp_path / "a.h5").weight.array) is np.ndarray


def test_attributes_can_be_changed_after_loading(tmp_path: Path) -> None:
    loaded = reloaded(Affine(2, 2), tmp_path, functions=False)
    loaded.extra = gt.Variable(5.0)
    loaded.weight.assign(np.zeros((2, 2)))
    again = reloaded(loaded, tmp_path)
    assert again.extra.item() == 5.0
    assert not again.weight.numpy().any()


def test_a_fresh_process_imports_nothing_that_made_the_file(tmp_path: Path) -> None:
    gt.save(Affine(2, 2), tmp_path / "a.h5", functions=False)
    printed = run_isolated(
        "gt.load(sys.argv[1])\n"
        "print([n for n in sys.modules if 'test_round' in n or 'pickle' == n[:6]])\n",
        tmp_path / "a.h5",
    )
    assert "test_round" not in printed
