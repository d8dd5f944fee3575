"""Who diverged, where, and what to do about it."""

from __future__ import annotations

import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from dynascope.arguments import require
from dynascope.compilation import filter_jit
from dynascope.errors import DivergenceError, DivergenceWarning
from dynascope.networks.batch_normalisation import BatchNormalisation
from dynascope.training.batches import Batch, Batches
from dynascope.training.chunks import Run
from dynascope.training.problem import State
from dynascope.training.trainer import EXPLODED

__all__ = ["Divergence", "diverged"]


class Divergence(eqx.Module):
    """Where members diverged.

    Attributes:
        step: Number of steps after which the loss was beyond all bounds, −1 for members that did not diverge.
        loss: The loss there, NaN for these.
    """

    step: np.ndarray
    loss: np.ndarray


def diverged(run: Run, states: State, curves: dict[str, np.ndarray], done: int) -> Divergence:
    """Find the members that diverged, at a step, at a recorded one, or by the last.

    Args:
        run: What was trained.
        states: Where all members are, as NumPy arrays.
        curves: What was recorded.
        done: Number of steps made.

    Raises:
        InputError: A batch was not finite, or a batch normalisation without epsilon met a channel that is constant.
        DivergenceError: All members diverged.

    Warns:
        DivergenceWarning: Some did.
    """
    loss, recorded = curves["loss"], run.recorded
    seen = recorded <= done
    with np.errstate(invalid="ignore"):
        limit = np.maximum(EXPLODED * np.abs(loss[..., :1]), np.asarray(states.limit)[..., None])
        beyond = ~(np.abs(loss) <= limit) & seen
    step, value = np.array(states.diverged, np.int64), np.array(states.diverged_loss, float)
    at = np.argmax(beyond, axis=-1)
    recorded_first = beyond.any(axis=-1) & ((step < 0) | (recorded[at] < step))
    step = np.where(recorded_first, recorded[at], step)
    value = np.where(recorded_first, np.take_along_axis(loss, at[..., None], -1)[..., 0], value)
    axes = len(run.ensemble.shape)
    leaves = jax.tree.leaves(states.weights)
    finite = [np.isfinite(leaf).all(axis=tuple(range(axes, leaf.ndim))) for leaf in leaves]
    late = (step < 0) & ~np.all(finite, axis=0)
    found = Divergence(np.where(late, done, step), np.where(late, np.nan, np.where(step < 0, np.nan, value)))
    failed = np.flatnonzero(np.ravel(found.step) >= 0)
    if len(failed):
        _tell(run, states, found, failed)
    return found


def _tell(run: Run, states: State, found: Divergence, failed: np.ndarray) -> None:
    first = failed[0]
    step, loss = int(np.ravel(found.step)[first]), float(np.ravel(found.loss)[first])
    if not np.isfinite(loss):
        _name_bad_input(run, states, int(first), step)
    if run.settings.clocked:
        time = float(np.ravel(np.asarray(states.clock[0]))[first])
    else:
        rates = [
            np.ravel(leaf)[first if run.ensemble.dimensions else 0] for leaf in jax.tree.leaves(run.ensemble.rates)
        ]
        time = float(max(rates)) * step
    beyond = f"is {loss:.3g} and has exploded" if np.isfinite(loss) else "left the finite numbers"
    sentence = f"the loss {beyond} by step {step}, time {time:.6g}"
    remedy = "choose a smaller learning rate or scale"
    if len(failed) == found.step.size:
        raise DivergenceError(f"{sentence}{run.ensemble.named(failed)}", time=time, remedy=remedy)
    warning = DivergenceWarning(f"{sentence}{run.ensemble.named(failed)}", time=time, remedy=remedy)
    warnings.warn(warning, stacklevel=5)


@filter_jit
def _batch(batches: Batches, seed: Any, number: Any, step: Any, data: Batch | None, dtype: Any) -> Batch | None:
    return batches.draw(batches.key(seed, number), step, batches.no_order(step), data, dtype)[0]


def _name_bad_input(run: Run, states: State, member: int, step: int) -> None:
    """Look at the batch at which a member left the finite numbers, outside of compiled code, where layers check."""
    batches, problem, shape = run.settings.batches, run.problem, run.ensemble.shape

    def of_member(leaf: Any) -> Any:
        return np.asarray(leaf).reshape(-1, *leaf.shape[len(shape) :])[member] if shape else leaf

    number, place = (run.members.number[member], run.members.place[member]) if shape else (np.int32(0), np.int32(0))
    with run.ensemble.precision():
        data = jax.tree.map(lambda values: values[place], problem.data) if run.settings.several else problem.data
        batch = _batch(batches, np.asarray(run.seed), number, np.int32(step), data, run.ensemble.dtype)
        if batch is None:
            return
        for name, values in (("inputs", batch.inputs), ("targets", batch.targets)):
            require(
                bool(np.isfinite(values).all()),
                f"the {name} of the batch of step {step} are not finite",
                argument="task" if batches.augmentation is None else "augmentation",
                value=name,
                remedy="check what draws or changes the samples",
            )
        layers = jax.tree.leaves(problem.frame, is_leaf=lambda part: isinstance(part, BatchNormalisation))
        if any(isinstance(layer, BatchNormalisation) and layer.epsilon == 0 for layer in layers):
            weights, carried = jax.tree.map(of_member, (states.weights, states.carried))
            network = eqx.combine(weights, carried, problem.frame)
            getattr(network, "train_step_outputs", network)(jnp.asarray(batch.inputs))
