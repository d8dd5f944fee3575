"""Commands that are interrupted at random moments, and commands that are run again."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from dynascope.cli.commands import main
from dynascope.results import load
from dynascope.results.tree import to_tree

TRIES = 6
COMMAND = [sys.executable, "-m", "dynascope", "predict", "a.npz", "--check"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="signals, and processes that are told their cores"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place, draw = tmp_path_factory.mktemp("commands"), np.random.default_rng(0)
    x = draw.normal(size=(60, 8))
    np.savez(place / "a.npz", x=x, y=x @ draw.normal(size=(8, 3)) + draw.normal(size=(60, 3)))
    return place


class Screen(threading.Thread):
    """A terminal, which shows what a process says there until nobody writes to it any more."""

    def __init__(self):
        super().__init__(daemon=True)
        self.side, self.written = os.openpty()
        self.said, self.begun = b"", threading.Event()

    def run(self) -> None:
        os.close(self.written)  # the process has it
        with os.fdopen(self.side, "rb", buffering=0) as shown, contextlib.suppress(OSError):  # how a terminal ends
            while part := shown.read(10_000):
                self.said += part
                if b"Reading" in self.said:
                    self.begun.set()


def test_interrupts_at_random_moments_end_with_their_code_and_soon(folder, tmp_path):
    draw, wrong, slowest = random.Random(0), [], 0.0
    environment = {**os.environ, "DYNASCOPE_CACHE": str(tmp_path / "cache")}  # empty, so that much is compiled
    for attempt in range(TRIES):
        kind = ["relu", "linear", "quadratic"][attempt % 3]
        screen = Screen()
        process = subprocess.Popen(
            [*COMMAND, "--network", kind, "--out", str(tmp_path)],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=screen.written,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        screen.start()
        assert screen.begun.wait(60)
        time.sleep(draw.uniform(0, 4))
        ended, start = process.poll(), time.monotonic()
        process.send_signal(signal.SIGINT)
        out = process.communicate(timeout=60)[0]
        seconds = time.monotonic() - start
        screen.join(60)
        err = screen.said.decode()
        slowest = max(slowest, seconds)
        # Where it was interrupted within `exec`, Python ends itself by the signal, which a shell tells as 130 too.
        code = 130 if process.returncode == -signal.SIGINT else process.returncode
        rightly = code == 130 and "Traceback" not in err and "interrupted." in err
        told_just_then = process.returncode in (0, 1, 4, -signal.SIGINT) and "Page:" in out
        if ended is None and not rightly and not told_just_then:
            wrong.append((kind, process.returncode, err[-300:]))
    print(f"{TRIES} interrupts, of which the slowest took {slowest:.1f} s")
    assert not wrong
    assert slowest < 30  # what is being compiled ends first


def arrays(path: Path) -> dict[str, np.ndarray]:
    tree = load(path)
    return {
        f"{node.path}/{name}": values.to_numpy()
        for node in to_tree(tree).subtree
        for name, values in node.variables.items()
    }


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core")
def test_the_same_command_gives_the_same_record_and_on_other_cores_one_that_is_nearly_the_same(folder, tmp_path):
    cores = sorted(os.sched_getaffinity(0))
    free = {name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "PJRT_NPROC")}
    records = []
    for number, used in enumerate([cores[:1], cores[:1], cores[:2]]):
        subprocess.run(
            [*COMMAND, "--network", "linear", "--out", str(tmp_path / str(number))],
            cwd=folder,
            env=free,
            check=False,
            capture_output=True,
            preexec_fn=lambda used=used: os.sched_setaffinity(0, used),
        )
        (path,) = (tmp_path / str(number)).glob("*.zarr.zip")
        records.append(arrays(path))
    one, again, two = records
    assert one.keys() == again.keys() == two.keys()
    assert len(one) >= 10
    for name, values in one.items():
        np.testing.assert_array_equal(again[name], values, err_msg=name)
        if values.dtype.kind == "f":
            least = 1e-10 * np.nanmax(np.abs(values), initial=0.0)
            np.testing.assert_allclose(two[name], values, rtol=1e-10, atol=least, err_msg=name)


AGAIN = {
    "a staircase": "--network linear",
    "a diagonal network": "--network diagonal --only y1 --jumps 3",
    "the kernel of a start": "--network relu --scale 10 --width 2000 --theory kernel-regression",
    "steps with batches": "--network linear --check --flow descent --learning-rate 0.05 --batch-size 20",
}


@pytest.mark.parametrize("options", AGAIN.values(), ids=AGAIN)
def test_other_commands_give_the_same_record_again(options, folder, tmp_path, capsys):
    found = []
    for number in range(2):
        code = main(["predict", str(folder / "a.npz"), *options.split(), "--out", str(tmp_path / str(number))])
        assert code in (0, 1, 4), capsys.readouterr().err
        (path,) = (tmp_path / str(number)).glob("*.zarr.zip")
        found.append(arrays(path))
    one, again = found
    assert one.keys() == again.keys()
    assert any("loss" in name for name in one)
    for name, values in one.items():
        np.testing.assert_array_equal(again[name], values, err_msg=name)
