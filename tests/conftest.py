"""Makes the helpers of this folder importable, and property tests repeatable where CI runs them."""

import os
import re
import sys
import traceback
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

with suppress(ImportError):  # it is not to come after distutils, which compilers import
    import setuptools  # noqa: F401

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# on CI the same examples every time; elsewhere new ones, so that somebody finds what is left
settings.register_profile("gradtape", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("gradtape")


# what forks is not to come after JAX, which starts threads
_LAST = (
    "test_docs.py",
    "test_coming_from.py",
    "test_numpy_protocols.py",
    "test_tensor.py",
    "test_stablehlo.py",
    "test_ops_on_jax.py",
    "test_jax_backend.py",
)


class _Checkout:
    """Keeps pytest from importing the checkout as a package: its folder may have any name."""

    @staticmethod
    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Dir | None:
        return pytest.Dir.from_parent(parent, path=path) if path == parent.config.rootpath else None


def _asked_for(left_out: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern of errors that something of an extra is missing."""
    provides = {"gradtape.datasets": "digits", "gradtape.export": "onnx|stablehlo"}
    names = "|".join(x.rpartition(".")[2] for x in left_out)
    given = "|".join([names, *(provides[x] for x in left_out & {*provides})])
    return re.compile(
        rf"no plugin provides the \w+ '({given})'|'({names})\.\w+', which no plugin provides"
    )


class _Extras:
    """Skips what needs an extra that was left out; see without_extras.py.

    That is what imports it, what asks for a backend, an executor or another thing that it provides,
    and tests with the mark ``needs``, which name it.
    """

    left_out = frozenset(os.environ.get("GRADTAPE_TESTS_WITHOUT", "").split())
    asked = _asked_for(left_out)

    def find_spec(self, name: str, *_: object) -> None:
        if name in self.left_out:
            pytest.skip(f"{name} was left out", allow_module_level=True)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        for mark in item.iter_markers("needs"):
            missing = self.left_out & {f"gradtape.{name}" for name in mark.args}
            if missing:
                pytest.skip(f"left out: {', '.join(sorted(missing))}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None]:
        try:
            return (yield)
        except Exception as error:
            text = "".join(traceback.format_exception_only(error))
            missing = [name for name in self.left_out if f"{name} is not in this" in text]
            asked = self.asked.search(text)
            if missing or asked:
                pytest.skip(f"left out: {missing[0] if missing else asked[0]}")
            raise


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Checkout())  # a conftest sees only the folders below its own
    if _Extras.left_out:
        extras = _Extras()
        config.pluginmanager.register(extras)
        sys.meta_path.insert(0, extras)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name in _LAST)
    # the plain executor, which then runs instead, would give the same results; on pretended GPUs,
    # which compile no kernels, it is meant to
    failed = "error:executor '.*' failed for (?!.*RawKernel):gradtape.errors.ExecutorWarning"
    for item in items:
        item.add_marker(pytest.mark.filterwarnings(failed), append=False)


@pytest.fixture(autouse=True, scope="session")
def no_look_at_threads():
    """Let fit not measure the cost of threads: other tests use the cores at the same time."""
    from gradtape.training import threads

    threads._Process.looked = True


@pytest.fixture(autouse=True)
def nothing_left_active():
    """Fail a test that leaves a tape, a trace, a batch or a setting: it would follow the next."""
    yield
    from gradtape.core.base import context, dtypes

    names = ("active_tapes", "active_graph", "active_batches")
    left = {name: getattr(context, name).get() for name in names}
    left["matmul_precision"] = dtypes.get_matmul_precision() != "default"
    context.active_tapes.set(())
    assert not any(left.values()), left
