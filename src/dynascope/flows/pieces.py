"""Integration in pieces, between which a time limit can stop the flow or the solver can be changed."""

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

_STEPS = {"explicit": 1000, "stabilised": 300, "stiff": 100}  # steps per piece
_WORTH = 15.0  # remaining seconds below which compiling another solver is not worthwhile
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
    """Integrate piece by piece until the flow ends or a time limit is reached.

    Args:
        piece: Function of a time, the weights at this time, a solver and a number of steps. The function returns a
            dictionary with the `curves` at all times, the `weights`, the `stop_time` and the `failure` (−1 for none),
            and whether the piece ended at the maximum number of steps.
        weights: Initial weights.
        times: Times to record.
        duration: Final time of the flow.
        max_steps: Maximum total number of steps.
        solvers: The first solver and, optionally, a second one, which replaces the first if it is faster.

    Returns:
        The recorded times until the flow stopped, and the result of the last piece with the curves of all pieces.
    """
    begin, steps, kept = np.zeros((), times.dtype), 0, []
    left, choice = np.ones(len(times), bool), _Choice(solvers)
    while True:
        solver, clock = choice.solver, time.monotonic()
        length = min(_STEPS[solver], max_steps - steps)
        result, unfinished = piece(begin, weights, solver, length)
        made = float(result["stop_time"] - begin)
        steps, begin, weights = steps + length, result["stop_time"], result["weights"]
        choice.update(made, time.monotonic() - clock, duration - float(begin))
        # After a flow has stopped, the curves are constant.
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
    """Chooses between two solvers for the next piece, based on their measured speeds."""

    def __init__(self, solvers: Sequence[str]):
        self.solver, *self.others = solvers
        self._paces: dict[str, float] = {}
        self._pieces = 0  # by the current solver
        self._wait = 1  # pieces before the next trial
        self._trial = 0  # remaining pieces of a trial

    def update(self, made: float, seconds: float, left: float) -> None:
        """Record the flow time and the wall-clock time of a piece, and choose the next solver."""
        self._pieces += 1
        self._paces[self.solver] = made / max(seconds, 1e-9)
        if not self.others:
            return
        other = self.others[0]
        if self._trial:
            # The time of the first piece of a trial includes compilation, so it is ignored.
            self._trial -= 1
            if not self._trial and self._paces[other] > self._paces[self.solver]:
                self._switch()
        elif self._pieces > self._wait and left > _WORTH * self._paces[self.solver]:
            self._switch()
            self._trial, self._wait = 2, _AGAIN

    def _switch(self) -> None:
        self.solver, self.others = self.others[0], [self.solver]
        self._pieces = 0
