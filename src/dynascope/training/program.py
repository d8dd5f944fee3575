"""The compiled loop over steps, which can be left and entered between any two of them."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from dynascope.compilation import filter_jit
from dynascope.flows.blocks import each_member, working_memory
from dynascope.training.problem import Member, Problem, Settings, State
from dynascope.training.trainer import Training

__all__ = ["advance", "one_step", "start"]


@filter_jit
def start(problem: Problem, members: Member, seed: Any, settings: Settings, rows: int, many: bool) -> Any:
    """States before the first step, and curves of so many rows to be filled."""

    def begin(member: Member) -> tuple[State, dict[str, Any]]:
        training = Training(problem, member, seed, settings)
        state = training.initial()
        shapes = jax.eval_shape(lambda state: _measured(training, state, jnp.asarray(0)), state)
        # As types of their own, which the loop gives them too, so that it is compiled for them only.
        state = jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), state)
        return state, jax.tree.map(lambda shape: jnp.zeros((rows, *shape.shape), shape.dtype), shapes)

    # Nothing is computed of it but shapes, however many members there are.
    return jax.vmap(begin)(members) if many else begin(members)


@filter_jit
def advance(
    problem: Problem,
    members: Member,
    seed: Any,
    settings: Settings,
    states: State,
    curves: dict[str, Any],
    recorded: Any,
    place: tuple[Any, Any, Any],
    many: bool,
) -> tuple[State, dict[str, Any]]:
    """Train from one step to another, and fill in the rows of the curves that lie between.

    Args:
        problem: What all members share.
        members: What belongs to each.
        seed: Seed of the batches.
        settings: What the program is compiled for.
        states: Where the members are.
        curves: What was recorded so far.
        recorded: Steps to record, increasing, and after them such as are never reached, one more than rows.
        place: The step where the members are, the number of rows that are filled, and the step to go to.
        many: Whether there are several members, with an axis of their own.

    Returns:
        The new states and curves.
    """
    first, filled, stop = place

    def member(arguments: tuple[Member, State, dict[str, Any]]) -> Any:
        member, state, curves = arguments
        arrays, rest = eqx.partition((problem, member, seed), eqx.is_array)

        def measured(state: State, step: Any, arrays: Any) -> dict[str, Any]:
            problem, member, seed = eqx.combine(arrays, rest)
            return _measured(Training(problem, member, seed, settings), state, step)

        if settings.batches.size is not None:
            # All data are more than a batch: of the members that train together one is measured at a time.
            measured = jax.custom_batching.sequential_vmap(measured)
        training = Training(problem, member, seed, settings)

        def unfinished(carry: Any) -> Any:
            step, row, *_ = carry
            return (step < stop) | (recorded[row] <= stop)

        def segment(carry: Any) -> Any:
            step, row, state, curves, order = carry
            end = jnp.minimum(stop, recorded[row])
            state, order = jax.lax.fori_loop(step, end, training.advance, (state, order))

            def with_row(curves: dict[str, Any]) -> dict[str, Any]:
                now = measured(state, end, arrays)
                return jax.tree.map(lambda curve, value: curve.at[row].set(value), curves, now)

            due = end == recorded[row]
            # Steps are those of all members, so that this remains a branch when they are batched.
            curves = jax.lax.cond(due, with_row, lambda curves: curves, curves)
            return end, row + due, state, curves, order

        carry = (first, filled, state, curves, training.no_order(first))
        _, _, state, curves, _ = jax.lax.while_loop(unfinished, segment, carry)
        return state, curves

    needed = _needed(problem, members, seed, settings, many)
    return each_member(member, (members, states, curves), many=many, needed=needed)


def one_step(problem: Problem, members: Member, seed: Any, settings: Settings, many: bool) -> Any:
    """What a step of a member computes and what is recorded of it, as a program that is not compiled."""
    member = jax.tree.map(lambda leaf: leaf[0], members) if many else members
    arrays, rest = eqx.partition((problem, member), eqx.is_array)

    def stepped(arrays: Any) -> Any:
        shared, own = eqx.combine(arrays, rest)
        training = Training(shared, own, seed, settings)
        index = jnp.asarray(0)
        state, _ = training.advance(index, (training.initial(), training.no_order(index)))
        return _measured(training, state, index)

    return jax.make_jaxpr(stepped)(arrays)


def _measured(training: Training, state: State, step: Any) -> dict[str, Any]:
    return training.measure(state, step) | training.told(state)


def _needed(problem: Problem, members: Member, seed: Any, settings: Settings, many: bool) -> int:
    """Bytes of the intermediate results of one gradient of a member."""
    if not many:
        return 0
    one = jax.tree.map(lambda leaf: leaf[0], members)

    def loss(weights: Any) -> Any:
        training = Training(problem, one._replace(weights=weights), seed, settings)
        return training.first_loss()

    return working_memory(loss, one.weights) // settings.parts
