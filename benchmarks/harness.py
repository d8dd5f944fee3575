"""Timing of dynascope and a baseline, alternately in one process, with one row of a table as output."""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any


def torch_or_exit() -> ModuleType:
    """Return PyTorch, or exit with a message if it is not installed."""
    try:
        return importlib.import_module("torch")
    except ImportError:
        print("skipped: PyTorch is not installed (pip install torch)")
        sys.exit(0)


def use_best_threads(torch: ModuleType, run: Callable[[], Any]) -> int:
    """Set PyTorch to one thread or to its default number, whichever is faster; return the number."""
    seconds = {}
    for threads in {1, torch.get_num_threads()}:
        torch.set_num_threads(threads)
        run()
        seconds[threads], _ = _timed(run)
    best = min(seconds, key=seconds.__getitem__)
    torch.set_num_threads(best)
    return best


def compare(
    name: str, ours: Callable[[], Any], theirs: Callable[[], Any], *, target: float, repeats: int = 7
) -> tuple[Any, Any]:
    """Print the speed-up of dynascope over a baseline, from the medians of alternating runs.

    The medians exclude the first run of each side. The additional time of our first run, mainly for compilation, is
    printed separately.

    Returns:
        The results of the last run of each side.
    """
    first, _ = _timed(ours)
    _timed(theirs)
    our_times, their_times = [], []
    for _ in range(repeats):
        seconds, our_result = _timed(ours)
        our_times.append(seconds)
        seconds, their_result = _timed(theirs)
        their_times.append(seconds)
    mine, other = statistics.median(our_times), statistics.median(their_times)
    print(f"{'benchmark':<20} {'ours':>10} {'theirs':>10} {'ratio':>8} {'target':>8} {'compile':>9}")
    print(f"{name:<20} {mine:>9.4f}s {other:>9.4f}s {other / mine:>7.1f}x {target:>7.1f}x {first - mine:>8.2f}s")
    return our_result, their_result


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result
