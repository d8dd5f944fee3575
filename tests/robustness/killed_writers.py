"""Writers of a record that are killed at random moments: `python killed_writers.py FOLDER KILLS exchange|rename`.

Prints how many kills came while a record was written, and what was wrong afterwards.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import pickle
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr

from dynascope.results import make_record, store, whole_files
from dynascope.results.store import load, save

NAMES = ["a", "b", "c", "d"]


def record(level: float) -> xr.Dataset:
    """Equal numbers in several arrays, so that a mixture of two records shows."""
    return make_record({name: (["time"], np.full(500, level)) for name in NAMES}, {"time": np.arange(500.0)})


def in_a_process(run: Callable[[], None]) -> int:
    """A child of this process that has no threads yet, since none were needed so far."""
    child = os.fork()
    if child == 0:
        try:
            run()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
            os._exit(1)
        os._exit(0)
    return child


def files_of(records: list[xr.Dataset]) -> list[dict[str, bytes]]:
    """What is written of each, made in another process, since it takes threads."""
    with tempfile.TemporaryFile() as file:

        def make() -> None:
            pickle.dump([store._files(xr.DataTree(each)) for each in records], file)
            file.flush()

        os.waitpid(in_a_process(make), 0)
        file.seek(0)
        return pickle.load(file)


def writing(path: Path, begun: Path, records: list[xr.Dataset], made: list[dict[str, bytes]]) -> None:
    for turn in itertools.cycle((0, 1)):
        store._files = lambda _, turn=turn: made[turn]
        save(records[turn], path)
        begun.touch()


def checking(path: Path) -> None:
    tree = load(path)
    levels = {float(value) for name in NAMES for value in tree[name].values}
    assert len(levels) == 1, f"a mixture of {levels}"
    save(record(-1.0), path)
    assert float(load(path)["a"][0]) == -1.0, "the next record was not saved"
    left = [name for name in os.listdir(path.parent) if name not in (path.name, "begun")]
    assert not left, f"left behind: {left}"


def main(folder: str, kills: str, way: str) -> None:
    path, begun, draw = Path(folder, "record.zarr"), Path(folder, "begun"), random.Random(0)
    if way == "rename":
        whole_files.exchanged = lambda *_: False
    # Made once, so that most kills come while files are written.
    records = [record(level) for level in (0.0, 1.0)]
    made = files_of(records)
    gc.freeze()  # what is here, which no child has to copy
    amid = 0
    for _ in range(int(kills)):
        begun.unlink(missing_ok=True)
        child = in_a_process(lambda: writing(path, begun, records, made))
        while not begun.exists():
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        amid += any("partial" in name or "previous" in name for name in os.listdir(folder))
        _, status = os.waitpid(in_a_process(lambda: checking(path)), 0)
        assert status == 0, "a kill did harm"
    print(json.dumps({"kills": int(kills), "amid": amid}))


if __name__ == "__main__":
    main(*sys.argv[1:])
