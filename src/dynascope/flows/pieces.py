"""A flow in pieces of so many steps, so that a deadline can end it between two of them, or another solver take over."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from dynascope.flows.deadline import overdue
from dynascope.flows.progress import report_progress

__all__ = ["in_pieces"]

_STEPS = {"explicit": 1000, "stabilised": 300, "stiff": 100}  # of a piece, which an explicit solver makes cheaply
_WORTH = 15.0  # seconds that are still to go, below which compiling another solver would not pay
_AGAIN = 30  # pieces after which the other solver is tried again

Piece = Callable[[np.ndarray, Any, str, int], tuple[dict[str, Any], bool]]


def in_pieces(
    piece: Piece,
    weights: Any,
    times: Float[np.ndarray, " time"],
    duration: float,
    max_steps: int,
    solvers: Sequence[str],
) -> tuple[Float[np.ndarray, " reached"], dict[str, Any]]:
    """Go on from piece to piece until the flow ends or the time is up.

    Args:
        piece: Function of a time, the weights there, a solver and a number of steps; returns the `curves` at all times,
            the `weights`, the `stop_time` and the `failure` (−1 for none), and whether only the steps were too few.
        weights: At time zero.
        times: At which to record.
        duration: When the flow ends.
        max_steps: Number of steps after which it is given up.
        solvers: The one to begin with, and perhaps another, which goes on where it gets farther in a second.

    Returns:
        The times until the flow was stopped, and what the last piece returned, with the curves of all at these times.
    """
    begin, steps, kept = np.zeros((), times.dtype), 0, []
    left, choice = np.ones(len(times), bool), _Choice(solvers)
    while True:
        solver, clock = choice.solver, time.monotonic()
        length = min(_STEPS[solver], max_steps - steps)
        result, unfinished = piece(begin, weights, solver, length)
        made = float(result["stop_time"] - begin)
        steps, begin, weights = steps + length, result["stop_time"], result["weights"]
        choice.learn(made, time.monotonic() - clock, duration - float(begin))
        # What ends by itself keeps its last values.
        reached = left & (times <= begin) if unfinished else left
        kept.append((times[reached], jax.tree.map(lambda values, rows=reached: values[rows], result["curves"])))
        left &= ~reached
        report_progress(float(begin), duration, "time")
        if not unfinished or steps >= max_steps:
            break
        if overdue():
            result = {**result, "failure": np.asarray(-1)}
            break
    curves = jax.tree.map(lambda *pieces: np.concatenate(pieces), *(curves for _, curves in kept))
    return np.concatenate([each for each, _ in kept]), {**result, "curves": curves}


class _Choice:
    """Which of two solvers makes the next piece: the one that was faster, or the other one to see how fast it is."""

    def __init__(self, solvers: Sequence[str]):
        self.solver, *self.others = solvers
        self._paces: dict[str, float] = {}
        self._pieces = 0  # of the present solver
        self._wait = 1  # before the other is tried
        self._trial = 0  # pieces left of a trial

    def learn(self, made: float, seconds: float, left: float) -> None:
        """Take note of how far a piece got in which time, and choose the solver of the next."""
        self._pieces += 1
        self._paces[self.solver] = made / max(seconds, 1e-9)
        if not self.others:
            return
        other = self.others[0]
        if self._trial:
            # The first piece of a trial was compiled as well, so it tells nothing.
            self._trial -= 1
            if not self._trial and self._paces[other] > self._paces[self.solver]:
                self._exchange()
        elif self._pieces > self._wait and left > _WORTH * self._paces[self.solver]:
            self._exchange()
            self._trial, self._wait = 2, _AGAIN

    def _exchange(self) -> None:
        self.solver, self.others = self.others[0], [self.solver]
        self._pieces = 0
