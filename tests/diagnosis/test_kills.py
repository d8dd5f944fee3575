"""A record survives the death of its writer at any moment."""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from dynascope.results import GrowingRecord

PROGRAM = Path(__file__).with_name("recorded_until_killed.py")


def killed(path, argument, seconds, *, after):
    """Start a run, kill it some seconds after it prints a word, and return the last rows on disk before the kill."""
    with subprocess.Popen([sys.executable, PROGRAM, path, argument], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.strip() == after:
                break
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(seconds)
        counted = int(xr.open_zarr(path)["written"]) if path.exists() else 0
        process.kill()
    return counted


@pytest.mark.slow
def test_twenty_kills_lose_only_rows_that_were_not_written_and_block_nothing(tmp_path):
    drawn, path, last = random.Random(0), tmp_path / "run.zarr", "new"
    recorded = 0
    for kill in range(20):
        # The first run dies while it records; later ones also while they start and resume.
        moment = "starting" if kill % 4 == 1 else "recording"
        counted = killed(path, last, drawn.uniform(0, 4), after=moment)
        found = GrowingRecord.open(path).read()
        steps = found["step"].values
        assert found.sizes["step"] >= counted
        assert steps.tolist() == list(range(len(steps)))
        np.testing.assert_allclose(found["weight_norm"].values[:, 0], 2**0.5 * (1.0 + steps), rtol=1e-6)
        np.testing.assert_array_equal(found["loss"].values[1:], steps[1:])
        # Resume from a checkpoint that is older than the last row.
        last = str(max(int(steps[-1]) - drawn.randrange(20), 0))
        recorded = max(recorded, len(steps))
    assert recorded > 1000
