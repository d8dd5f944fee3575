"""Prediction of a staircase, compared with gradient descent of the same network at the largest stable step.

Both start from the same data, and every prediction computes the moments again. Descent is compiled, uses the full batch
of 1797 digits, and stops when its loss exceeds the predicted last plateau by less than a thousandth of the initial
loss.
"""

from __future__ import annotations

import functools

import harness
import jax
import jax.numpy as jnp
import numpy as np

from dynascope import predict
from dynascope.networks import network_for
from dynascope.tasks import Task, digits

SCALE = 1e-8
SHARE = 1e-3


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    task = digits()
    network = network_for("linear", task)
    staircase = predict(task, network, scale=SCALE).record
    goal = float(staircase["loss_after"][-1] + SHARE * staircase["loss_before"][0])
    start = (SCALE * jnp.asarray(network.first), SCALE * jnp.asarray(network.second))
    data = (jnp.asarray(task.inputs), jnp.asarray(task.targets))
    step = largest_stable_step(start, task, goal)

    def ours() -> float:
        return float(predict(Task(task.inputs, task.targets), network, scale=SCALE)["loss_after"][-1])

    def theirs() -> tuple[int, float]:
        steps, loss = jax.block_until_ready(descend(loss_on_data, start, data, step, goal))
        return int(steps), float(loss)

    predicted, (steps, loss) = harness.compare("staircase prediction", ours, theirs, target=100.0, repeats=3)
    print(f"descent: {steps} steps of size {step:.3g} to loss {loss:.6f}; predicted last plateau {predicted:.6f}")


@functools.partial(jax.jit, static_argnums=0)
def descend(loss_of, weights, data, step, goal, most=1_000_000):
    """Run gradient descent until the loss falls below the goal or explodes; return the number of steps and the loss."""

    def more(state):
        _, loss, steps = state
        return (loss > goal) & (loss < 1e6) & (steps < most)

    def take(state):
        weights, _, steps = state
        loss, gradient = jax.value_and_grad(loss_of)(weights, data)
        return jax.tree.map(lambda w, g: w - step * g, weights, gradient), loss, steps + 1

    _, loss, steps = jax.lax.while_loop(more, take, (weights, loss_of(weights, data), 0))
    return steps, loss


def loss_on_data(weights, data):
    (first, second), (x, y) = weights, data
    return jnp.sum((x @ first @ second - y) ** 2) / (2 * len(x))


def loss_on_moments(weights, moments):
    (first, second), (cross, moment, power) = weights, moments
    learned = (first @ second).T
    return (power - 2 * jnp.sum(learned * cross) + jnp.sum(learned @ moment * learned)) / 2


def largest_stable_step(start, task, goal) -> float:
    """Return the largest step, to 5 %, with which descent reaches the goal.

    Moments yield the same steps as the data, but faster.
    """
    moments = (jnp.asarray(task.cross_moment), jnp.asarray(task.input_moment), task.target_power)
    step = 64.0
    while (
        not np.isfinite(loss := float(descend(loss_on_moments, start, moments, step, goal, 50_000)[1])) or loss > goal
    ):
        step /= 1.05
    return step


if __name__ == "__main__":
    main()
