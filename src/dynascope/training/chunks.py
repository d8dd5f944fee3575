"""Long loops in pieces of about half a second, between which progress is told and a checkpoint is written."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from dynascope.flows.deadline import overdue
from dynascope.flows.ensemble import Ensemble
from dynascope.training.checkpoint import Checkpoint
from dynascope.training.problem import Member, Problem, Settings
from dynascope.training.program import advance, start

__all__ = ["Run", "train"]

_SECONDS = 0.5  # of a piece
_GROWTH = 8  # of a piece over the one before it, at most
_NEVER = np.iinfo(np.int32).max  # a step that is never reached, after the last recorded one


@dataclasses.dataclass(frozen=True)
class Run:
    """What is trained, for how long.

    Attributes:
        ensemble: The members.
        problem: What they share.
        settings: What the program is compiled for.
        members: What belongs to each, with an axis in front if there are several.
        steps: Number of steps.
        recorded: Steps at which to record, increasing.
        seed: Seed of the batches.
    """

    ensemble: Ensemble
    problem: Problem
    settings: Settings
    members: Member
    steps: int
    recorded: np.ndarray
    seed: int


def train(
    run: Run,
    *,
    checkpoint: Checkpoint | None = None,
    progress: Callable[[int, int], Any] | None = None,
    probe: Callable[[Any], None] | None = None,
) -> tuple[list[Any], int]:
    """Train all members to the last step, or until all have diverged, or until a deadline.

    The pieces are runs of one compiled program from one step to another, so that the numbers do not depend on them.

    Args:
        run: What is trained.
        checkpoint: Where the state is kept, or None.
        progress: Told after every piece how many steps are done, of how many.
        probe: Called at every recorded step with the parts of the results.

    Returns:
        For each part of the members its states and curves, which may have rows to spare; and the steps that were made.
    """
    ensemble, settings, recorded = run.ensemble, run.settings, run.recorded
    many, seed = bool(ensemble.dimensions), np.asarray(run.seed)
    # A power of two, so that a run that records a few steps more or less finds the same program.
    rows = 1 << (len(recorded) - 1).bit_length()
    sentinel = np.append(recorded, np.full(rows + 1 - len(recorded), _NEVER)).astype(np.int32)
    with ensemble.precision():
        arrays, rest = eqx.partition(run.problem, eqx.is_array)
        problem = eqx.combine(jax.device_put(arrays), rest)
    own = ensemble.parts(run.members)

    def begin(part: Member) -> Any:
        return start(problem, part, seed, settings, rows, many)

    def go(first: int, filled: int, stop: int, results: list[Any]) -> list[Any]:
        place = np.asarray(first, np.int32), np.asarray(filled, np.int32), np.asarray(stop, np.int32)

        def piece(part: Any) -> Any:
            member, (states, curves) = part
            found = advance(problem, member, seed, settings, states, curves, sentinel, place, many)
            return jax.block_until_ready(found)

        return ensemble.together(advance, piece, list(zip(own, results, strict=True)), (problem, settings, sentinel))

    # One tuple, so that an interrupt never parts the step from the states.
    at: tuple[int, list[Any]] = 0, ensemble.together(start, begin, own, (problem, settings))
    if checkpoint is not None:
        at = checkpoint.read(at[1])
    # Before the first step nothing is recorded yet, not even that step.
    filled = int(np.searchsorted(recorded, at[0], side="right")) if at[0] else 0
    length, measured = 1, False
    try:
        while at[0] < run.steps or filled == 0:
            stop = min(at[0] + length, run.steps)
            if probe is not None and filled < len(recorded):
                stop = min(stop, int(recorded[filled]))
            began, made = time.monotonic(), stop - at[0]
            at = stop, go(at[0], filled, stop, at[1])
            spent, before = time.monotonic() - began, filled
            filled = int(np.searchsorted(recorded, stop, side="right"))
            if probe is not None and filled > before:
                probe(at[1])
            if progress is not None:
                progress(stop, run.steps)
            if overdue() or all(np.all(np.asarray(states.diverged) >= 0) for states, _ in at[1]):
                break
            if checkpoint is not None:
                checkpoint.write_if_due(*at)
            # The first piece was compiled as well, so it tells nothing of how long a step takes.
            wanted = made * _SECONDS / max(spent, 1e-6) if measured else _GROWTH * length
            length, measured = round(min(max(wanted, 1), _GROWTH * length)), True
    finally:
        if checkpoint is not None:
            checkpoint.write(*at)
    return at[1], at[0]
