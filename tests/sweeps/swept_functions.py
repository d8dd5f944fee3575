"""Functions at the top level of a module, which can be sent to worker processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import xarray as xr


def power(rate, seed=0):
    """Numbers that depend on both arguments."""
    return {"loss": (1 - rate) ** 10 + seed, "seed_squared": seed**2}


def slow_curve(rate, seed=0):
    """A record that takes a moment: a number, a curve and a list whose length varies."""
    time.sleep(0.02)
    times = np.linspace(0, 1 + seed, 9)
    record = xr.Dataset({"loss": ("time", rate * np.exp(-times)), "end": ((), rate)}, {"time": times})
    return record.assign(jump_time=("jump", np.arange(1.0, 2.0 + seed % 3)))


def slower_curve(rate, seed=0):
    """The same record, which takes longer."""
    time.sleep(0.2)
    return slow_curve(rate, seed)


def fails(rate, seed=0):
    """Fail in different ways."""
    if seed == 1:
        raise ValueError("seed one is unlucky")
    return {"loss": float("nan") if seed == 2 else rate}


def mended(rate, seed=0, marker=""):
    """Fail until a file exists."""
    if seed == 1 and not Path(marker).exists():
        raise RuntimeError("the file is missing")
    return rate


def dies(rate, seed=0):
    """Kill the worker in one cell."""
    if seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return rate


def threads(rate):
    """The number of threads that numerical libraries may use."""
    from threadpoolctl import threadpool_info

    np.ones((3, 3)) @ np.ones((3, 3))
    return {"most": max(each["num_threads"] for each in threadpool_info())}


def trivial(cell):
    """A cell that takes no time."""
    return cell * 0.5
