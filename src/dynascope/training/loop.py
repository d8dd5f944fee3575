"""The compiled loop over steps, run in chunks of about half a second for progress, checkpoints and interrupts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from dynascope.compilation import filter_jit
from dynascope.flows.blocks import each_member, working_memory
from dynascope.flows.deadline import overdue
from dynascope.training.checkpoint import CheckpointFile
from dynascope.training.specification import Member, Problem, Run
from dynascope.training.trainer import State, Trainer

__all__ = ["advance", "one_step", "start", "train"]

_SECONDS = 0.5  # of a chunk
_GROWTH = 8  # of a chunk over the one before it, at most
_NEVER = np.iinfo(np.int32).max  # a step that is never reached, after the last recorded one


def train(
    run: Run,
    *,
    checkpoint: CheckpointFile | None = None,
    progress: Callable[[int, int], Any],
    probe: Callable[[Any], None] | None = None,
) -> tuple[list[Any], int]:
    """Train all members to the last step, or until all have diverged, or until a deadline.

    The chunks are runs of one compiled program from one step to another, so that the numbers do not depend on them.

    Args:
        run: What is trained.
        checkpoint: Where the state is kept, or None.
        progress: Called after every chunk with the number of steps done and of all.
        probe: Called at every recorded step with the parts of the results.

    Returns:
        For each part of the members its states and curves, which may have rows to spare; and the steps that were made.
    """
    ensemble, (steps, recorded, _) = run.ensemble, run.steps
    # A power of two, so that a run that records a few steps more or less finds the same program.
    rows = 1 << (len(recorded) - 1).bit_length()
    sentinel = np.append(recorded, np.full(rows + 1 - len(recorded), _NEVER)).astype(np.int32)
    with ensemble.precision():
        arrays, rest = eqx.partition(run.problem, eqx.is_array)
        problem = eqx.combine(jax.device_put(arrays), rest)
    own = ensemble.parts(run.members)

    def begin(part: Member) -> Any:
        return start(problem, part, rows)

    def go(first: int, filled: int, stop: int, results: list[Any]) -> list[Any]:
        place = np.asarray(first, np.int32), np.asarray(filled, np.int32), np.asarray(stop, np.int32)

        def chunk(part: Any) -> Any:
            member, (states, curves) = part
            return jax.block_until_ready(advance(problem, member, states, curves, sentinel, place))

        return ensemble.together(advance, chunk, list(zip(own, results, strict=True)), (problem, sentinel))

    # One tuple, so that an interrupt never parts the step from the states.
    at: tuple[int, list[Any]] = 0, ensemble.together(start, begin, own, (problem, rows))
    if checkpoint is not None:
        at = checkpoint.read(at[1])
    # Before the first step nothing is recorded yet, not even that step.
    filled = int(np.searchsorted(recorded, at[0], side="right")) if at[0] else 0
    length, measured = 1, False
    try:
        while at[0] < steps or filled == 0:
            stop = min(at[0] + length, steps)
            if probe is not None and filled < len(recorded):
                stop = min(stop, int(recorded[filled]))
            began, made = time.monotonic(), stop - at[0]
            at = stop, go(at[0], filled, stop, at[1])
            spent, before = time.monotonic() - began, filled
            filled = int(np.searchsorted(recorded, stop, side="right"))
            if probe is not None and filled > before:
                probe(at[1])
            progress(stop, steps)
            if overdue() or all(np.all(np.asarray(states.diverged) >= 0) for states, _ in at[1]):
                break
            if checkpoint is not None:
                checkpoint.write_if_due(*at)
            # The first chunk was compiled as well, so its time is not that of a step.
            wanted = made * _SECONDS / max(spent, 1e-6) if measured else _GROWTH * length
            length, measured = round(min(max(wanted, 1), _GROWTH * length)), True
    finally:
        if checkpoint is not None:
            checkpoint.write(*at)
    return at[1], at[0]


@filter_jit
def start(problem: Problem, members: Member, rows: int) -> Any:
    """States before the first step, and curves of so many rows to be filled."""

    def begin(member: Member) -> tuple[State, dict[str, Any]]:
        trainer = Trainer(problem, member)
        state = trainer.initial()
        shapes = jax.eval_shape(lambda state: trainer.recorded(state, jnp.asarray(0)), state)
        # As types of their own, which the loop gives them too, so that it is compiled for them only.
        state = jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), state)
        return state, jax.tree.map(lambda shape: jnp.zeros((rows, *shape.shape), shape.dtype), shapes)

    # Only shapes are computed from the members, however many there are.
    return jax.vmap(begin)(members) if _many(members) else begin(members)


@filter_jit
def advance(
    problem: Problem,
    members: Member,
    states: State,
    curves: dict[str, Any],
    recorded: Any,
    place: tuple[Any, Any, Any],
) -> tuple[State, dict[str, Any]]:
    """Train from one step to another, and fill in the rows of the curves that lie between.

    Args:
        problem: What all members share.
        members: What each is trained with.
        states: Where the members are.
        curves: What was recorded so far.
        recorded: Steps to record, increasing, and after them steps that are never reached, one more than rows.
        place: The step where the members are, the number of rows that are filled, and the step to go to.
    """
    first, filled, stop = place
    sampler = problem.sampler

    def member(arguments: tuple[Member, State, dict[str, Any]]) -> Any:
        member, state, curves = arguments
        arrays, rest = eqx.partition((problem, member), eqx.is_array)

        def measured(state: State, step: Any, arrays: Any) -> dict[str, Any]:
            return Trainer(*eqx.combine(arrays, rest)).recorded(state, step)

        if sampler.size is not None:
            # All data are more than a batch: of the members that train together one is measured at a time.
            measured = jax.custom_batching.sequential_vmap(measured)
        trainer = Trainer(problem, member)

        def unfinished(carry: Any) -> Any:
            step, row, *_ = carry
            return (step < stop) | (recorded[row] <= stop)

        def segment(carry: Any) -> Any:
            step, row, state, curves, order = carry
            end = jnp.minimum(stop, recorded[row])
            state, order = jax.lax.fori_loop(step, end, trainer.advance, (state, order))

            def with_row(curves: dict[str, Any]) -> dict[str, Any]:
                now = measured(state, end, arrays)
                return jax.tree.map(lambda curve, value: curve.at[row].set(value), curves, now)

            due = end == recorded[row]
            # Steps are those of all members, so that this remains a branch when they are batched.
            curves = jax.lax.cond(due, with_row, lambda curves: curves, curves)
            return end, row + due, state, curves, order

        carry = (first, filled, state, curves, sampler.no_order(first))
        _, _, state, curves, _ = jax.lax.while_loop(unfinished, segment, carry)
        return state, curves

    needed, many = 0, _many(members)
    if many:
        one = jax.tree.map(lambda leaf: leaf[0], members)
        # Bytes of one gradient of a member.
        needed = working_memory(
            lambda weights: Trainer(problem, one._replace(weights=weights)).first_loss(), one.weights
        )
    return each_member(member, (members, states, curves), many=many, needed=needed // sampler.parts)


def one_step(run: Run) -> Any:
    """The program, not compiled, of a step of a member and of what is recorded after it."""
    member = jax.tree.map(lambda leaf: leaf[0], run.members) if _many(run.members) else run.members
    arrays, rest = eqx.partition((run.problem, member), eqx.is_array)

    def stepped(arrays: Any) -> Any:
        trainer = Trainer(*eqx.combine(arrays, rest))
        index = jnp.asarray(0)
        state, _ = trainer.advance(index, (trainer.initial(), run.problem.sampler.no_order(index)))
        return trainer.recorded(state, index)

    return jax.make_jaxpr(stepped)(arrays)


def _many(members: Member) -> bool:
    return members.number.ndim > 0
