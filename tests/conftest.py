"""Tests run with dynascope's annotations checked: beartype the types, jaxtyping the shapes."""

import collections
import contextlib
import dataclasses
import functools
import gc
import inspect
import itertools
import math
import os
import re
import sys
import types
import typing
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Errors that are asked for go through JAX by the thousand, which would compare each frame with its folders.
os.environ.setdefault("JAX_TRACEBACK_FILTERING", "off")
if "PYTEST_XDIST_WORKER" in os.environ:
    # One thread each, since the tests run in as many processes as there are cores.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("PJRT_NPROC", "1")

import beartype
import hypothesis
import jaxtyping
import pytest
from _pytest.runner import runtestprotocol

if sys.version_info < (3, 12):
    # What a protocol asks for is looked up at each check, of `ArrayLike` eight times; later versions keep it too.
    typing._get_protocol_attrs = functools.cache(typing._get_protocol_attrs)

# The hook takes the checker by its name. This one lets an int stand for a float, as the typing standard does.
beartype.tolerant = beartype.beartype(
    conf=beartype.BeartypeConf(is_pep484_tower=True, violation_type=jaxtyping.TypeCheckError)
)
_checks_shapes = jaxtyping.jaxtyped
_sizes = _checks_shapes("context")


def _checks_types(*, typechecker):
    """Check shapes where shapes are told, and types alone elsewhere, since binding shapes is most of a call's cost.

    Functions in functions are made again at each call of the outer one, and their checks with them, which takes longer
    than most of them do: they go without.
    """

    def decorate(checked):
        if inspect.isclass(checked):
            # What a class writes itself, and what it has of another one, is checked already.
            if dataclasses.is_dataclass(checked) and not hasattr(checked.__init__, "__wrapped__"):
                checked.__init__ = decorate(checked.__init__)
            return checked
        if "<locals>" in checked.__qualname__ or not checked.__annotations__:
            return checked
        checking, hints = None, None
        # What names mean now, which a test may have changed by the first call. What is imported for type checkers only
        # is looked for then.
        with contextlib.suppress(Exception):
            hints = typing.get_type_hints(checked, include_extras=True)

        @functools.wraps(checked)
        def called(*arguments, **keywords):
            nonlocal checking
            if jaxtyping.config.jaxtyping_disable:
                return checked(*arguments, **keywords)
            # Made at the first call, since no process calls all that it imports.
            checking = checking or _checking(checked, hints, typechecker)
            return checking(*arguments, **keywords)

        return called

    return decorate


def _checking(checked, hints, typechecker):
    shaped = any(re.search("[\"']", str(annotation)) for annotation in checked.__annotations__.values())
    if hints is None:
        return _checks_shapes(checked, typechecker=typechecker)
    # Whoever reads the annotations of the function itself finds them as they are written.
    parts = checked.__code__, checked.__globals__, checked.__name__, checked.__defaults__, checked.__closure__
    same = functools.update_wrapper(types.FunctionType(*parts), checked)
    same.__kwdefaults__, same.__annotations__ = checked.__kwdefaults__, hints
    del same.__wrapped__
    with contextlib.suppress(Exception):
        checks = typechecker(same)
        return _with_sizes(checks) if shaped else checks
    return _checks_shapes(same, typechecker=typechecker)


def _with_sizes(checks):
    """Hold the sizes of one call together, as jaxtyping does, which checks arguments once more with the result."""

    def called(*arguments, **keywords):
        with _sizes:
            return checks(*arguments, **keywords)

    return called


jaxtyping.jaxtyped = _checks_types
jaxtyping.install_import_hook("dynascope", "beartype.tolerant")

_MANY_PROGRAMS = 300  # above which memory maps are counted after each module
_SPARE = 30_000  # maps that must be free for the next module; a program takes up to a hundred of them

# The same draws in every run, whose programs the next one finds; others with `--hypothesis-profile explore`.
hypothesis.settings.register_profile("dynascope", max_examples=12, deadline=None, database=None, derandomize=True)
hypothesis.settings.register_profile("explore", max_examples=100, deadline=None, database=None, derandomize=False)
hypothesis.settings.load_profile("dynascope")
# Numbers in the sources of what happens to be imported would be drawn too, others in every process, and a program
# compiled for each; to look for them takes a process twenty seconds.
with contextlib.suppress(ImportError):  # of hypothesis alone, whose versions may have it elsewhere
    from hypothesis.internal.conjecture import providers

    providers.is_local_module_file = lambda _: False

# Tracing makes millions of objects that live long, which Python's garbage collector would go through again and again;
# and what is imported and collected stays to the end.
gc.set_threshold(20_000, 10, 10)
gc.disable()

_programs = collections.Counter()  # found in the cache, and asked for


class FromTheEnd:
    """Collects from the last module to the first, and then puts what it found in order."""

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector):
        report = yield
        if isinstance(collector, pytest.Session | pytest.Directory):
            report.result.reverse()
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items):
        modules = [list(module) for _, module in itertools.groupby(items, lambda item: item.getparent(pytest.File))]
        items[:] = itertools.chain.from_iterable(reversed(modules))


def pytest_configure(config):
    """Let every other process collect from the end, where bytecode is still to be made: it finds half of it done.

    Not where tests are asked for by name, which may be in any order.
    """
    odd = os.environ.get("PYTEST_XDIST_WORKER", "gw0")[-1] in "13579"
    if odd and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        config.pluginmanager.register(FromTheEnd())


def pytest_sessionstart(session):
    """Keep compiled programs where the command line keeps its own, for both processes and for the next run."""
    if not session.config.getoption("numprocesses", None):
        import jax

        from dynascope.compilation import compile_cache

        def count(name: str, *_, **__):
            _programs[name.rpartition("/")[2]] += 1

        jax.monitoring.register_event_listener(count)
        jax.monitoring.register_event_duration_secs_listener(count)
        kept = contextlib.ExitStack()
        kept.enter_context(compile_cache())
        session.config.add_cleanup(kept.close)


def pytest_collection_modifyitems(items):
    """Begin with what takes longest in one piece, so that no process waits for it at the end.

    Then come tests that forget programs, to count them: the fewer there are the sooner, and later ones find theirs.
    """
    forgetful = {
        "test_its_first_call_compiles_at_most_two_programs",
        "test_no_program_calls_python",
        "test_a_study_finds_all_its_programs_when_it_runs_again",
    }

    def place(item) -> int:
        if item.nodeid.startswith(("tests/test_style.py", "tests/prediction/test_calls.py")):
            return 0
        return 1 if getattr(item, "originalname", "") in forgetful else 2

    items.sort(key=place)


def pytest_collection_finish():
    """Never look for garbage among modules and tests, which stay to the end; what is garbage already is little."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish(session):
    """Tell the process that reports how many programs there were."""
    # pytest looks for garbage five times more.
    gc.collect()
    gc.freeze()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["programs"] = dict(_programs)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Add up what the processes tell."""
    _programs.update(getattr(node, "workeroutput", {}).get("programs", {}))


def pytest_terminal_summary(terminalreporter):
    """Tell what the cache gained: a run with `DYNASCOPE_CACHE` at an empty folder finds only its own programs."""
    found, asked = _programs["cache_hits"], _programs["compile_requests_use_cache"]
    terminalreporter.write_line(f"compiled programs: {asked - found} made, {found} found in the cache")


def _theory(module: str, test: str) -> str | None:
    """The public function of theory, such as `neuron.trajectory`, of which a test asks what is asked of all of them."""
    if module.startswith("src/dynascope/theory/"):
        *rooms, _, name = test.removeprefix("dynascope.theory.").split(".")
        return ".".join((*rooms, name))
    if re.fullmatch(r"tests/(theory|robustness)/test_(conformance|docstrings|mutations|traced|units)\.py", module):
        prefix = "theory\\." if "robustness" in module else ""
        found = re.search(rf"\[(?:\d-)?{prefix}(\w+(?:\.\w+)+)[]-]", test)
        return found and found[1]
    return None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keep the tests of a module in one process, and those of each family's member: a program is compiled once.

    Those of a study go with those of all studies that look at it, which read the same run, and those of a function of
    theory with what is asked of all functions.

    The names of the tests decide, and no marks: under pytest 9.2, xdist 3.8 spreads marked groups test by test.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByModule(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            module, _, test = nodeid.partition("::")
            if "torch" in module or "[torch." in test:
                return "torch"  # which one process imports
            study = re.fullmatch(r"tests/studies/\w+/test_(\w+)\.py", module)
            if study:
                return f"tests/studies/test_conformance.py[{study[1].replace('_', '-')}]"
            theory = _theory(module, test)
            if theory:
                return f"tests/theory/test_conformance.py[{theory}]"
            if module.endswith("/test_conformance.py"):
                return module + re.sub(r"^[^[]*\[?(.*?)(-jax|-torch)?]?$", r"[\1]", test)
            return module

    return ByModule(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Tell the process that reports how a test ended, and all else only where that is not well.

    To pack and unpack the other three messages of each test took more time than most tests do.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ or item.config.option.durations is not None:
        return None
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    well = all(report.passed for report in reports)
    for report in reports:
        if report.when == "call" or not well:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.fixture
def unchecked_types():
    """For a test that passes what the annotations forbid, to see what a user sees."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def _spare_maps() -> float:
    with contextlib.suppress(OSError):
        most = int(Path("/proc/sys/vm/max_map_count").read_text())
        return most - Path("/proc/self/maps").read_bytes().count(b"\n")
    return math.inf  # where there is no such bound


@pytest.fixture(autouse=True, scope="module")
def _few_programs():
    """Clear compiled programs before the process reaches Linux's limit of memory maps, where it would crash."""
    yield
    if _programs["backend_compile_duration"] > _MANY_PROGRAMS and _spare_maps() < _SPARE:
        sys.modules["jax"].clear_caches()
        gc.unfreeze()
        gc.collect()
    # What a module leaves stays too, and is not gone through again.
    gc.collect(1)
    gc.freeze()
