import collections
import contextlib
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import cache, cache_directory, compile_cache

SETTINGS = (
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_raise_persistent_cache_errors",
    "jax_compilation_cache_max_size",
    "jax_persistent_cache_enable_xla_caches",
)
# Ten programs; tells how many came from the cache and how many were compiled, and nothing else.
TEN_PROGRAMS = """
import collections, jax
from dynascope.compilation import compile_cache

events = collections.Counter()
jax.monitoring.register_event_listener(lambda name, **_: events.update([name.rpartition("/")[2]]))
with compile_cache():
    for power in range(10):
        assert float(jax.jit(lambda x: x**power + jax.numpy.sin(x))(0.0)) == (power == 0)
print(events["cache_hits"], events["cache_misses"])
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A cache directory of its own, and a JAX that has none."""
    own = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setenv("DYNASCOPE_CACHE", str(tmp_path / "cache"))
    yield tmp_path / "cache"
    jax.config.update("jax_compilation_cache_dir", own)


@pytest.fixture
def counted():
    events = collections.Counter()

    def count(name, **_):
        events[name.rpartition("/")[2]] += 1

    jax.monitoring.register_event_listener(count)
    yield events
    jax.monitoring.unregister_event_listener(count)


def compute(events) -> tuple[int, int]:
    """Run a program that this process has not compiled yet: how often it was found, and how often compiled."""
    events.clear()
    x = np.ones((3, 3), np.float32)
    with compile_cache():
        assert jax.jit(lambda x: jnp.sin(x) @ x)(x).shape == (3, 3)
    return events["cache_hits"], events["compile_requests_use_cache"] - events["cache_hits"]


def entries(place: Path) -> list[Path]:
    return sorted(place.glob("programs/*/*-cache"))


@contextlib.contextmanager
def nothing_said(capfd):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield
    assert not told
    assert capfd.readouterr() == ("", "")


def test_the_second_run_finds_the_program(place, counted, capfd):
    with nothing_said(capfd):
        assert compute(counted) == (0, 1)
        assert compute(counted) == (1, 0)
    assert len(entries(place)) == 1


def test_settings_are_what_they_were_before(place):
    before = [getattr(jax.config, name) for name in SETTINGS]
    filters = list(warnings.filters)
    within = []

    @compile_cache()
    def fail():
        within.extend(getattr(jax.config, name) for name in SETTINGS)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert within[0].startswith(str(place))
    assert [getattr(jax.config, name) for name in SETTINGS] == before
    assert warnings.filters == filters


def test_after_it_programs_are_kept_no_more(place, counted):
    compute(counted)
    jax.jit(lambda x: jnp.cos(x) @ x)(np.ones((3, 3), np.float32))
    assert len(entries(place)) == 1


def test_a_context_within_another_changes_nothing(place, counted):
    with compile_cache():
        assert compute(counted) == (0, 1)
        assert compute(counted) == (1, 0)
        assert jax.config.jax_compilation_cache_dir


@pytest.mark.parametrize("word", ["off", "OFF"])
def test_off_keeps_nothing(place, counted, monkeypatch, word):
    monkeypatch.setenv("DYNASCOPE_CACHE", word)
    compute(counted)
    assert cache_directory() is None
    assert not place.exists()


def test_the_cache_of_jax_wins(place, counted, tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "own"))
    with compile_cache():
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / "own")
    assert not place.exists()


@pytest.mark.parametrize("damage", [lambda whole: whole[: len(whole) // 2], lambda whole: b"", lambda whole: b"x" * 99])
def test_a_damaged_program_is_compiled_anew(place, counted, capfd, damage):
    compute(counted)
    (entry,) = entries(place)
    entry.write_bytes(damage(entry.read_bytes()))
    with nothing_said(capfd):
        assert compute(counted) == (0, 1)


def test_a_folder_in_the_place_of_a_program_costs_time_only(place, counted, capfd):
    compute(counted)
    (entry,) = entries(place)
    entry.unlink()
    entry.mkdir()
    with nothing_said(capfd):
        assert compute(counted) == (0, 1)


def test_a_file_in_the_way_costs_time_only(place, counted, capfd):
    place.write_text("not a folder")
    with nothing_said(capfd):
        assert compute(counted) == (0, 1)
    assert place.read_text() == "not a folder"


def test_a_file_in_the_way_of_the_versions_costs_time_only(place, counted, capfd):
    (place / "programs").mkdir(parents=True)
    compute(counted)
    (folder,) = (place / "programs").iterdir()
    for entry in folder.iterdir():
        entry.unlink()
    folder.rmdir()
    folder.write_text("not a folder")
    with nothing_said(capfd):
        assert compute(counted) == (0, 1)


@contextlib.contextmanager
def as_nobody():
    """Without the rights of a superuser, to whom nothing is read-only."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.skipif(sys.platform == "win32", reason="a folder has no such rights there")
def test_all_folders_that_are_made_are_for_their_owner_alone(counted, place, tmp_path, monkeypatch):
    monkeypatch.setenv("DYNASCOPE_CACHE", str(tmp_path / "a" / "b"))
    before = os.umask(0o002)
    try:
        compute(counted)
    finally:
        os.umask(before)
    made = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert len(made) == 4
    assert {path.stat().st_mode & 0o777 for path in made} == {0o700}


@pytest.mark.skipif(sys.platform == "win32", reason="a folder has no such rights there")
def test_a_read_only_folder_is_read(place, counted, capfd, monkeypatch):
    with tempfile.TemporaryDirectory() as folder:  # others may pass through it, unlike those of pytest
        Path(folder).chmod(0o755)
        monkeypatch.setenv("DYNASCOPE_CACHE", folder)
        compute(counted)
        for path in (Path(folder), *Path(folder).rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        with nothing_said(capfd), as_nobody():
            assert compute(counted) == (1, 0)
            with compile_cache():
                jax.jit(lambda x: jnp.tan(x) @ x)(np.ones((3, 3), np.float32))
        assert len(entries(Path(folder))) == 1
        for path in (Path(folder), *Path(folder).rglob("*")):
            path.chmod(0o755)


@pytest.mark.skipif(sys.platform == "win32", reason="sizes of files cannot be limited there")
def test_a_full_disk_costs_time_only(place, counted, capfd, monkeypatch):
    import resource

    # Bytecode that is cut off would be found by every process after this one.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with nothing_said(capfd):
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        try:
            assert compute(counted) == (0, 1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def run_elsewhere(place: Path, **environment: str) -> subprocess.Popen:
    rest = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_COMP", "JAX_PERS", "XLA_"))}
    return subprocess.Popen(
        [sys.executable, "-c", TEN_PROGRAMS],
        env={**rest, "DYNASCOPE_CACHE": str(place), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told(process: subprocess.Popen) -> tuple[int, int]:
    said, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    hits, misses = map(int, said.split())
    return hits, misses


@pytest.mark.slow
def test_two_processes_share_a_folder_and_the_flags_of_the_compiler_are_part_of_the_key(place):
    totals = {sum(told(process)) for process in [run_elsewhere(place), run_elsewhere(place)]}
    # One that was read while it was written is compiled once more.
    totals.add(sum(told(run_elsewhere(place))))
    hits, misses = told(run_elsewhere(place))
    assert (totals, misses) == ({hits}, 0)
    assert hits >= 10
    hits, misses = told(run_elsewhere(place, XLA_FLAGS="--xla_cpu_enable_fast_min_max=true"))
    assert (hits, misses > 0) == (0, True)


@pytest.mark.parametrize("changed", ["version", "processor"])
def test_another_version_or_processor_has_another_folder(place, counted, monkeypatch, changed):
    compute(counted)
    if changed == "version":
        monkeypatch.setattr(cache, "__version__", "0.0.other")
    else:
        monkeypatch.setattr(cache.platform, "machine", lambda: "an abacus")
    assert compute(counted) == (0, 1)
    assert len({entry.parent for entry in entries(place)}) == 2


def test_the_programs_unused_for_longest_are_dropped(place, counted, monkeypatch):
    older = place / "programs" / "dynascope-older"
    older.mkdir(parents=True)
    for age, name in enumerate(["new", "old", "oldest"]):
        path = older / f"jit_{name}-0123-cache"
        path.write_bytes(b"x" * 40_000)
        os.utime(path, (10**9 - age, 10**9 - age))
    (place / "notes-cache").write_text("not ours")
    monkeypatch.setattr(cache, "_LARGEST", 100_000)
    assert compute(counted) == (0, 1)
    names = {entry.name.split("-")[0] for entry in entries(place)}
    assert {"jit_new", "jit_old", "jit_oldest"} & names == {"jit_new", "jit_old"}
    assert compute(counted) == (1, 0)
    assert (place / "notes-cache").exists()


def test_other_warnings_are_heard(place):
    with pytest.warns(UserWarning, match="something else"), compile_cache():
        warnings.warn("something else", stacklevel=1)
