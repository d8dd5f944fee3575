"""Writers that are killed at random moments: `python killed_writers.py FOLDER KILLS save|append`.

Prints how many kills left something half-written, and fails at the first that did harm.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr

from dynascope.results import GrowingRecord, make_record
from dynascope.results.store import load, save

NAMES = ["a", "b", "c", "d"]
LENGTH = 100
AMID = 2  # exit code of a check that found something half-written


def in_a_process(run: Callable[[], bool | None]) -> int:
    """A child of this process, which has no threads, since it reads and writes nothing itself."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # nothing may block
        try:
            code = AMID if run() else 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
            code = 1
        os._exit(code)
    return child


# Results that replace one another.


def values(turn: int) -> np.ndarray:
    """Numbers that cannot be compressed, so that writing takes a good part of the time."""
    return turn + np.random.default_rng(0).random(50_000)


def saving(path: Path, begun: Path) -> None:
    records = []
    for turn in (0, 1):
        # The same numbers in several arrays, so that a mixture of two results shows.
        variables = {name: (["time"], values(turn)) for name in NAMES}
        records.append(make_record(variables, {"time": np.arange(50_000)}))
    for record in itertools.cycle(records):
        save(record, path)
        begun.touch()


def half_saved(path: Path) -> list[Path]:
    return [each for each in path.parent.iterdir() if "partial" in each.name]


def check_saved(path: Path) -> bool:
    left = half_saved(path)
    for each in left:
        each.unlink()
    tree = load(path)
    turns = {turn for turn in (0, 1) for name in NAMES if np.array_equal(tree.observed[name], values(turn))}
    assert len(turns) == 1, f"a mixture of {turns}"
    assert all(np.array_equal(tree.observed[name], values(*turns)) for name in NAMES)
    return bool(left)


# A record that grows.


def row(step: int) -> dict[str, float | np.ndarray]:
    return {"step": step, "loss": 1 / (1 + step), "strength": np.sin(step + np.arange(LENGTH))}


def appending(path: Path, begun: Path) -> None:
    variables = {"step": (["step"], int), "loss": (["step"], float), "strength": (["step", "mode"], float)}
    if path.exists():
        record = GrowingRecord.open(path, seconds=0.002)
    else:
        record = GrowingRecord.create(path, variables, axis="step", coords={"mode": range(LENGTH)}, seconds=0.002)
    for step in itertools.count(record.written):
        record.append(row(step))
        begun.touch()


def check_appended(path: Path) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        written = int(xr.open_zarr(path)["written"])
        found = xr.open_zarr(path).isel(step=slice(written)).load()
        rest = xr.open_zarr(path).isel(step=slice(written, written + 8000)).load()
    before = path.with_suffix(".count")
    least = int(before.read_text()) if before.exists() else 0
    assert written >= least, f"{written} rows of {least}"
    steps = np.arange(written)
    assert np.array_equal(found["step"], steps)
    assert np.array_equal(found["loss"], 1 / (1 + steps))
    assert np.array_equal(found["strength"], np.sin(steps[:, None] + np.arange(LENGTH)))
    before.write_text(str(written))
    return any(bool(rest[name].notnull().any()) for name in ("loss", "strength")) or bool(rest["step"].any())


WAYS = {"save": ("record.zarr.zip", saving, check_saved), "append": ("run.zarr", appending, check_appended)}


def main(folder: str, kills: str, way: str) -> None:
    name, write, check = WAYS[way]
    path, begun, draw = Path(folder, name), Path(folder, "begun"), random.Random(0)
    amid = 0
    for turn in range(int(kills)):
        begun.unlink(missing_ok=True)
        child = in_a_process(lambda: write(path, begun))
        while not begun.exists():
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.1))
        # A file is written quickly, so that few random moments hit it: every second kill waits for one.
        end = time.monotonic() + 10
        while way == "save" and turn % 2 and not half_saved(path) and time.monotonic() < end:
            pass
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        _, status = os.waitpid(in_a_process(lambda: check(path)), 0)
        assert os.waitstatus_to_exitcode(status) in (0, AMID), "a kill did harm"
        amid += status != 0
    print(json.dumps({"kills": int(kills), "amid": amid}))


if __name__ == "__main__":
    main(*sys.argv[1:])
