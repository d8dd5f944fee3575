"""Processes that are killed while they write."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from robustness import killed_writers

WRITERS = Path(killed_writers.__file__)

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="there are no forks")]


@pytest.mark.parametrize("way", ["save", "append"])
def test_a_kill_at_any_moment_loses_nothing_that_was_written_and_blocks_nobody(tmp_path, way):
    done = subprocess.run(
        [sys.executable, str(WRITERS), str(tmp_path), "20", way], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["kills"] == 20
    # Otherwise the kills came between two writes, and nothing was tried.
    assert told["amid"] >= 1
    print(told)


def test_a_record_is_right_at_any_time_while_it_is_written(tmp_path):
    path = tmp_path / "run.zarr"
    code = f"import killed_writers as k; from pathlib import Path; k.appending(Path({str(path)!r}), Path('begun'))"
    writer = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": _paths()})
    try:
        counts, end = [0], time.monotonic() + 60
        while len({*counts}) < 10 and time.monotonic() < end:
            if path.exists():
                killed_writers.check_appended(path)
                counts.append(int(path.with_suffix(".count").read_text()))
    finally:
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
    assert len({*counts}) >= 10
    assert np.all(np.diff(counts) >= 0)
    assert int(xr.open_zarr(path)["written"]) >= counts[-1]


def _paths() -> str:
    return os.pathsep.join([str(WRITERS.parent), *sys.path])
