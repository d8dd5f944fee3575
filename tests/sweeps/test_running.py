from __future__ import annotations

import concurrent.futures
import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import filelock
import numpy as np
import pytest
import xarray as xr
from sweeps import swept_functions as functions

from dynascope.errors import InputError
from dynascope.sweeps import load_sweep, sweep

RATES = [0.1, 0.25, 0.5]


def digest(folder: Path) -> dict[str, str]:
    """The content of every file of the store, apart from the durations."""
    files = [file for file in (folder / "sweep.zarr").rglob("*") if file.is_file() and file.parent.name != "seconds"]
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_every_cell_has_the_number_that_the_function_returns(tmp_path):
    found = sweep(functions.power, over={"rate": RATES, "seed": range(4)}, out=tmp_path / "s", workers=0)
    expected = (1 - np.array(RATES)[:, None]) ** 10 + np.arange(4)
    np.testing.assert_array_equal(found.record["loss"], expected)
    assert found.counts == {"done": 12}
    assert set(found.numbers) == {"loss", "seed_squared"}
    table = found.to_dataframe()
    assert len(table) == 12
    assert table.loc[(table["rate"] == 0.25) & (table["seed"] == 3), "loss"].item() == expected[1, 3]


def test_worker_processes_find_the_same_as_this_process_and_as_threads(tmp_path):
    over = {"rate": RATES, "seed": range(3)}
    here = sweep(functions.slow_curve, over=over, out=tmp_path / "here", workers=0)
    sweep(functions.slow_curve, over=over, out=tmp_path / "processes", workers=2)
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        sweep(functions.slow_curve, over=over, out=tmp_path / "threads", executor=executor)
    assert digest(tmp_path / "here") == digest(tmp_path / "processes") == digest(tmp_path / "threads")
    assert here.record["loss"].dims == ("rate", "seed", "point")


def test_curves_are_on_a_common_grid_and_lists_are_padded(tmp_path):
    record = sweep(functions.slow_curve, over={"seed": range(4)}, out=tmp_path / "s", workers=0, rate=0.5).record
    assert record["time"].sel(seed=2).to_numpy()[[0, -1]].tolist() == [0.0, 3.0]
    np.testing.assert_allclose(record["loss"].isel(point=0), 0.5)
    assert record["count_jump"].to_numpy().tolist() == [1, 2, 3, 1]
    assert np.isfinite(record["jump_time"]).sum("jump").to_numpy().tolist() == [1, 2, 3, 1]
    assert record["end"].to_numpy().tolist() == [0.5] * 4


def test_failed_cells_keep_their_reason_and_the_others_are_computed(tmp_path):
    found = sweep(functions.fails, over={"rate": [0.5], "seed": range(4)}, out=tmp_path / "s", workers=0)
    assert found.counts == {"done": 2, "failed": 2}
    assert found.failures()["reason"].tolist() == ["ValueError: seed one is unlucky", "loss is nan"]


def test_records_that_diverged_have_failed(tmp_path):
    def diverges(rate):
        return xr.Dataset({"loss": ("time", [1.0, rate])}, {"time": [0.0, 1.0]})

    found = sweep(diverges, over={"rate": [0.5, 2.0]}, out=tmp_path / "s", workers=0)
    assert found.counts == {"done": 2}

    def blows_up(rate):
        return diverges(np.inf if rate > 1 else rate)

    found = sweep(blows_up, over={"rate": [0.5, 2.0]}, out=tmp_path / "t", workers=0)
    assert found.failures()["reason"].tolist() == ["loss ends at inf"]


def test_variables_with_several_dimensions_and_taken_names_are_kept(tmp_path):
    def found(rate, point=0):
        curves = np.arange(6.0).reshape(2, 3) * rate
        record = xr.Dataset({"loss": (("rate", "time"), curves), "status": ((), rate)}, {"time": [0.0, 1.0, 2.0]})
        return record.assign(table=(("point", "column"), np.full((int(rate), 2), rate)))

    record = sweep(found, over={"rate": [1.0, 3.0]}, out=tmp_path / "s", workers=0).record
    assert record["loss"].dims == ("rate", "rate_", "point")
    np.testing.assert_allclose(record["loss"].isel(point=[0, 32, -1]).sel(rate=3.0), 3 * np.arange(6.0).reshape(2, 3))
    assert record["status_"].to_numpy().tolist() == [1.0, 3.0]
    assert np.isfinite(record["table"]).sum(["point_", "column"]).to_numpy().tolist() == [2, 6]


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_to_add_one(tmp_path):
    program = tmp_path / "program.py"
    lines = ["from dynascope.sweeps import sweep", "def square(rate):", "    return rate**2"]
    program.write_text(
        "\n".join([*lines, f"sweep(square, over={{'rate': [1.0]}}, out={str(tmp_path / 's')!r}, workers=1)"])
    )
    run = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.strip().splitlines()[-1].startswith("dynascope.errors.InputError")
    assert "__main__" in run.stderr.strip().splitlines()[-1]
    assert "a worker process imports this script" in run.stderr
    assert load_sweep(tmp_path / "s").counts == {"waiting": 1}


def test_failed_cells_are_computed_again_only_on_request(tmp_path):
    marker = tmp_path / "marker"
    call = {"over": {"rate": [0.5], "seed": range(3)}, "out": tmp_path / "s", "workers": 0, "marker": str(marker)}
    assert sweep(functions.mended, **call).counts == {"done": 2, "failed": 1}
    marker.touch()
    assert sweep(functions.mended, **call).counts == {"done": 2, "failed": 1}
    found = sweep(functions.mended, **call, retry_failed=True)
    assert found.counts == {"done": 3}
    assert found.failures().empty


@pytest.mark.slow
def test_a_cell_that_kills_its_worker_fails_and_the_others_are_computed(tmp_path):
    found = sweep(functions.dies, over={"rate": RATES[:2], "seed": range(3)}, out=tmp_path / "s", workers=2)
    assert found.counts == {"done": 4, "failed": 2}
    assert found.failures()["seed"].tolist() == [1, 1]
    assert found.failures()["reason"].str.contains("worker process died").all()


def test_workers_have_one_thread(tmp_path):
    found = sweep(functions.threads, over={"rate": [1, 2]}, out=tmp_path / "s", workers=2)
    assert found.record["most"].to_numpy().tolist() == [1, 1]


def test_appended_values_extend_the_axes_and_compute_only_new_cells(tmp_path):
    first = sweep(functions.slow_curve, over={"rate": RATES, "seed": range(2)}, out=tmp_path / "s", workers=0).record
    over = {"rate": [*RATES, 0.75], "seed": range(3)}
    second = sweep(functions.slow_curve, over=over, out=tmp_path / "s", workers=0).record
    kept = {"rate": slice(0, 3), "seed": slice(0, 2)}
    np.testing.assert_array_equal(second["seconds"].isel(kept), first["seconds"])
    whole = sweep(functions.slow_curve, over=over, out=tmp_path / "whole", workers=0).record
    for name in ("loss", "time", "jump_time", "end", "status"):
        np.testing.assert_array_equal(second[name], whole[name])


@pytest.mark.parametrize(
    ("over", "problem"),
    [
        ({"rate": RATES, "width": [1]}, "no argument width"),
        ({"rate": [0.5, 0.5]}, "twice"),
        ({"rate": "0:1:5log"}, "logarithmic"),
        ({"rate": "-1:1:5log"}, "logarithmic"),
        ({"rate": []}, "no values"),
        ({}, "over is"),
        ({"rate": [float("nan")]}, "nan"),
        ({"rate": ["a", 1.0]}, "mixes"),
        ({"seed": range(2)}, "also needs rate"),
        ({"rate": range(10_001)}, "10001 cells"),
    ],
)
def test_bad_axes_are_rejected_by_name(tmp_path, over, problem):
    with pytest.raises(InputError, match=problem) as refusal:
        sweep(functions.power, over=over, out=tmp_path / "s", workers=0)
    assert refusal.value.argument == "over"
    assert not (tmp_path / "s").exists()


def test_functions_without_numbers_and_functions_that_cannot_be_sent_are_rejected(tmp_path):
    found = sweep(lambda rate: [rate], over={"rate": [1]}, out=tmp_path / "s", workers=0)
    assert "no numbers" in found.failures()["reason"].item()
    with pytest.raises(InputError, match="top level") as refusal:
        sweep(lambda rate: rate, over={"rate": [1]}, out=tmp_path / "t", workers=1)
    assert refusal.value.argument == "run"
    with pytest.raises(InputError, match="also fixed"):
        sweep(functions.power, over={"rate": [1]}, out=tmp_path / "t", workers=0, rate=2)


def test_another_sweep_in_the_folder_is_rejected_by_name(tmp_path):
    call = {"over": {"rate": RATES}, "out": tmp_path / "s", "workers": 0}
    sweep(functions.power, **call)
    for function, changed, argument in (
        (functions.fails, {}, "out"),
        (functions.power, {"seed": 3}, "out"),
        (functions.power, {"over": {"rate": [0.2, *RATES]}}, "over"),
        (functions.power, {"over": {"rate": RATES, "seed": [0]}}, "over"),
    ):
        with pytest.raises(InputError) as refusal:
            sweep(function, **{**call, **changed})
        assert refusal.value.argument == argument
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    with pytest.raises(InputError, match="not the folder of a sweep"):
        sweep(functions.power, **{**call, "out": tmp_path / "other"})
    with pytest.raises(InputError, match="not the folder of a sweep"):
        load_sweep(tmp_path / "other")


def test_a_second_sweep_of_the_same_folder_is_rejected(tmp_path):
    call = {"over": {"rate": RATES}, "out": tmp_path / "s", "workers": 0}
    sweep(functions.power, **call)
    with filelock.FileLock(tmp_path / "s" / ".lock"), pytest.raises(InputError, match="another process"):
        sweep(functions.power, **call)


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write everywhere")
def test_a_folder_that_is_not_writable_is_rejected(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot be stored") as refusal:
        sweep(functions.power, over={"rate": RATES}, out=tmp_path / "s", workers=0)
    assert refusal.value.argument == "out"


def test_a_full_disk_is_reported_and_loses_no_finished_cell(tmp_path, monkeypatch):
    from dynascope.sweeps.journal import Journal

    append, written = Journal.append, []

    def full(self, entry):
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        written.append(entry)
        append(self, entry)

    call = {"over": {"rate": RATES}, "out": tmp_path / "s", "workers": 0}
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "append", full)
        with pytest.raises(InputError, match="no space left") as refusal:
            sweep(functions.power, **call)
    assert refusal.value.argument == "out"
    assert load_sweep(tmp_path / "s").counts == {"waiting": 1, "done": 2}
    assert sweep(functions.power, **call).counts == {"done": 3}


def test_a_stored_sweep_opens_with_xarray_alone(tmp_path):
    sweep(functions.power, over={"rate": RATES}, out=tmp_path / "s", workers=0)
    with xr.open_zarr(tmp_path / "s" / "sweep.zarr") as stored:
        assert float(stored["loss"].sel(rate=0.5)) == 0.5**10
        assert stored["status"].to_numpy().astype(str).tolist() == ["done"] * 3


AXES, CELLS = {"rate": "0.1:1:15", "seed": "0:10"}, 150
PROGRAM = f"""
import sys
from dynascope.sweeps import sweep
from sweeps.swept_functions import slower_curve
if __name__ == "__main__":
    sweep(slower_curve, over={AXES!r}, out=sys.argv[1], workers=2)
"""


def started(program: Path, out: Path) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    return subprocess.Popen([sys.executable, str(program), str(out)], env={**os.environ, "PYTHONPATH": path})


def children_of(process: int) -> list[int]:
    with contextlib.suppress(FileNotFoundError):
        return list(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))
    return []


def finished_cells(out: Path) -> int:
    """The number of cells in the journal or in the store."""
    if not (out / "sweep.zarr" / ".zmetadata").exists() or not (out / "journal.jsonl").exists():
        return 0
    lines = (out / "journal.jsonl").read_bytes().split(b"\n")[:-1]
    stored = np.argwhere(load_sweep(out).record["status"].to_numpy() == "done").tolist()
    return len({tuple(json.loads(line)["cell"]) for line in lines} | set(map(tuple, stored)))


def is_alive(process: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="lists processes by /proc")
def test_random_kills_of_parent_and_workers_lose_nothing_that_was_completed(tmp_path):
    program, draw = tmp_path / "program.py", random.Random(0)
    program.write_text(PROGRAM)
    out, done, kills = tmp_path / "killed", [0], 0
    while kills < 6 or (len(set(done)) < 4 and done[-1] < CELLS):
        process, before = started(program, out), finished_cells(out)
        deadline = time.monotonic() + 60
        while finished_cells(out) <= before and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
            if draw.random() < 0.003:  # also while the process or its workers start
                break
        time.sleep(draw.uniform(0, 3))
        workers = children_of(process.pid)
        if workers and draw.random() < 0.7:
            with contextlib.suppress(ProcessLookupError):
                os.kill(draw.choice(workers), signal.SIGKILL)
                kills += 1
            time.sleep(draw.uniform(0, 4))
            workers += children_of(process.pid)
        process.kill()
        kills += 1
        process.wait()
        deadline = time.monotonic() + 60  # a worker that is still importing ends when it has started
        while any(map(is_alive, workers)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not any(map(is_alive, workers)), "workers outlive their parent"
        assert finished_cells(out) >= done[-1]
        done.append(finished_cells(out))
    assert started(program, out).wait() == 0
    assert len(set(done)) > 2, "the sweep ended before it was interrupted at several places"
    sweep(functions.slower_curve, over=AXES, out=tmp_path / "whole", workers=2)
    assert digest(out) == digest(tmp_path / "whole")


@pytest.mark.slow
def test_a_thousand_trivial_cells_are_quick_and_small(tmp_path):
    sweep(functions.trivial, over={"cell": range(2)}, out=tmp_path / "first", workers=2)
    start = time.monotonic()
    found = sweep(functions.trivial, over={"cell": range(1000)}, out=tmp_path / "s", workers=2)
    assert (time.monotonic() - start) / 1000 < 0.05
    assert found.record["value"].to_numpy().tolist() == [0.5 * cell for cell in range(1000)]
    assert sum(1 for _ in (tmp_path / "s").rglob("*")) < 1000
