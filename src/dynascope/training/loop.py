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
from dynascope.training.energy import require_excess
from dynascope.training.optimizers import transformation
from dynascope.training.specification import Member, Problem, Run
from dynascope.training.trainer import State, Trainer

__all__ = ["advance", "excess_losses", "one_step", "start", "train"]

_SECONDS = 0.5  # target duration of a chunk
_GROWTH = 8  # largest ratio of the lengths of successive chunks
_NEVER = np.iinfo(np.int32).max  # a step that is never reached


def train(
    run: Run,
    *,
    checkpoint: CheckpointFile | None = None,
    progress: Callable[[int, int], Any],
    probe: Callable[[Any], None] | None = None,
) -> tuple[list[Any], int]:
    """Train all members until the last step or a deadline, or until all members have diverged.

    All chunks run the same compiled program, so their boundaries do not change the results.

    Args:
        run: The specification of the run.
        checkpoint: The file that stores the state, or None.
        progress: Function called after every chunk with the number of completed steps and the total.
        probe: Function called at every recorded step with the results of all parts.

    Returns:
        The states and curves for each part of the ensemble, and the number of completed steps. Curves may have unused
        rows at the end.
    """
    ensemble, (steps, recorded, _) = run.ensemble, run.steps
    # A power of two, so that runs with similar numbers of recorded steps share a compiled program.
    rows = 1 << (len(recorded) - 1).bit_length()
    sentinel = np.append(recorded, np.full(rows + 1 - len(recorded), _NEVER)).astype(np.int32)
    with ensemble.precision():
        arrays, rest = eqx.partition(run.problem, eqx.is_array)
        problem = eqx.combine(jax.device_put(arrays), rest)
    own = ensemble.parts(run.members)

    def begin(part: Member) -> Any:
        if hasattr(transformation(problem.optimizer, 1.0, problem.schedule).update, "excess"):
            require_excess(excess_losses(problem, part))
        return start(problem, part, rows)

    def go(first: int, filled: int, stop: int, results: list[Any]) -> list[Any]:
        place = np.asarray(first, np.int32), np.asarray(filled, np.int32), np.asarray(stop, np.int32)

        def chunk(part: Any) -> Any:
            member, (states, curves) = part
            return jax.block_until_ready(advance(problem, member, states, curves, sentinel, place))

        return ensemble.together(advance, chunk, list(zip(own, results, strict=True)), (problem, sentinel))

    # One tuple, so that an interrupt cannot separate the step from the states.
    at: tuple[int, list[Any]] = 0, ensemble.together(start, begin, own, (problem, rows))
    if checkpoint is not None:
        at = checkpoint.read(at[1])
    # Before the first step nothing is recorded, not even step 0.
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
            # The duration of the first chunk includes compilation.
            wanted = made * _SECONDS / max(spent, 1e-6) if measured else _GROWTH * length
            length, measured = round(min(max(wanted, 1), _GROWTH * length)), True
    finally:
        if checkpoint is not None:
            checkpoint.write(*at)
    return at[1], at[0]


@filter_jit
def start(problem: Problem, members: Member, rows: int) -> Any:
    """Return the states before the first step, and empty curves with the given number of rows."""

    def begin(member: Member) -> tuple[State, dict[str, Any]]:
        trainer = Trainer(problem, member)
        state = trainer.initial()
        shapes = jax.eval_shape(lambda state: trainer.recorded(state, jnp.asarray(0)), state)
        # Remove weak types, as the loop does, so that the loop is compiled only once.
        state = jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), state)
        return state, jax.tree.map(lambda shape: jnp.zeros((rows, *shape.shape), shape.dtype), shapes)

    # `eval_shape` allocates nothing, so all members fit into memory at once.
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
    """Train from one step to another, and record the steps in between.

    Args:
        problem: The settings and data that all members share.
        members: Weights and learning rates of the members.
        states: States of the members at the first step.
        curves: Curves recorded so far.
        recorded: Steps to record in increasing order, followed by steps that are never reached; one entry more than the
            curves have rows.
        place: The first step, the number of rows recorded so far, and the last step.
    """
    first, filled, stop = place
    sampler = problem.sampler

    def member(arguments: tuple[Member, State, dict[str, Any]]) -> Any:
        member, state, curves = arguments
        arrays, rest = eqx.partition((problem, member), eqx.is_array)

        def measured(state: State, step: Any, arrays: Any) -> dict[str, Any]:
            return Trainer(*eqx.combine(arrays, rest)).recorded(state, step)

        if sampler.size is not None:
            # All data need more memory than a batch, so members that train together are measured one at a time.
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
            # All members share the step, so this remains a branch under `vmap`.
            curves = jax.lax.cond(due, with_row, lambda curves: curves, curves)
            return end, row + due, state, curves, order

        carry = (first, filled, state, curves, sampler.no_order(first))
        _, _, state, curves, _ = jax.lax.while_loop(unfinished, segment, carry)
        return state, curves

    needed, many = 0, _many(members)
    if many:
        one = jax.tree.map(lambda leaf: leaf[0], members)
        # Memory in bytes for the gradient of one member.
        needed = working_memory(
            lambda weights: Trainer(problem, one._replace(weights=weights)).first_loss(), one.weights
        )
    return each_member(member, (members, states, curves), many=many, needed=needed // sampler.parts)


@filter_jit
def excess_losses(problem: Problem, members: Member) -> Any:
    """Return the excess of the loss of the first batch over the target loss of the optimiser, for each member."""

    def excess(member: Member) -> Any:
        trainer = Trainer(problem, member)
        return trainer.optimizer.update.excess(trainer.first_loss(), trainer.weights)  # type: ignore[attr-defined]

    return jax.lax.map(excess, members) if _many(members) else excess(members)


def one_step(run: Run) -> Any:
    """Return the jaxpr of a step of one member and of the quantities that are recorded after this step."""
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
