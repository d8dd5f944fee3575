"""The record of a run, with its curves, the results of its probe, and its diverged members."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from dynascope.compilation import filter_jit
from dynascope.errors import DivergenceError, DivergenceWarning
from dynascope.networks.batch_normalisation import BatchNormalisation
from dynascope.results import variables_of
from dynascope.tasks.stream import Stream
from dynascope.training.batches import Batch, Sampler
from dynascope.training.losses import Loss
from dynascope.training.specification import Run
from dynascope.training.statistics import Sampled
from dynascope.training.trainer import EVALUATED, EXPLODED, State
from dynascope.validation import require, shown

__all__ = ["Probed", "observed"]

_OWN = (
    *("epoch", "time", "loss", "accuracy", "test_loss", "test_accuracy"),
    *("applied_rate", "diverged_step", "diverged_loss"),
)


class Probed:
    """Collects the results {name: (names of the axes, value)} of a probe at recorded steps, for each network."""

    def __init__(self, run: Run, probe: Callable[[Any], Mapping[str, tuple[Sequence[str], Any]]]):
        self._run, self._probe, self._found = run, probe, []

    def __call__(self, results: Sequence[Any]) -> None:
        """Apply the probe to the networks of all members."""
        ensemble = self._run.ensemble
        weights = ensemble.joined([eqx.combine(states.weights, states.carried) for states, _ in results])
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[len(ensemble.shape) :]), weights)
        count = int(np.prod(ensemble.shape))
        each = [jax.tree.map(lambda leaf, own=own: leaf[own], flat) for own in range(count)]
        with ensemble.precision():
            self._found.append([self._measured(ensemble.network(own)) for own in each])

    def curves(self) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """Return the collected values; the ensemble dimensions and `step` come before the named axes."""
        names = self._found[0][0].keys()
        every = [one for row in self._found for one in row]
        require(
            all(one.keys() == names for one in every),
            "the names that the probe returns change between steps",
            argument="probe",
            remedy="return the same quantities at every step",
        )
        longest: dict[str, int] = {}
        for axes, value in (entry for one in every for entry in one.values()):
            for axis, length in zip(axes, value.shape, strict=True):
                longest[axis] = max(length, longest.get(axis, 0))
        ensemble, found = self._run.ensemble, {}
        for name, (axes, _) in self._found[0][0].items():
            shape = (len(self._found), len(self._found[0]), *(longest[axis] for axis in axes))
            curve = np.full(shape, np.nan)
            for row, members in enumerate(self._found):
                for member, one in enumerate(members):
                    value = one[name][1]
                    curve[(row, member, *map(slice, value.shape))] = value
            curve = np.moveaxis(curve, 0, 1).reshape(*ensemble.shape, len(self._found), *shape[2:])
            found[name] = (axes, curve)
        return found

    def _measured(self, network: Any) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        found = {}
        entries = variables_of(self._probe(network))
        require(
            isinstance(entries, Mapping)
            and all(isinstance(each, tuple) and len(each) == 2 for each in entries.values()),
            f"the probe returns {shown(entries)}, which has type {type(entries).__name__}",
            argument="probe",
            value=type(entries).__name__,
            remedy="return {name: (names of the axes, value)}, or the result of a function from dynascope.probes",
        )
        problem = self._run.problem
        others = {name for name, *_ in (*problem.statistics, *problem.step_statistics)}
        for name, (axes, value) in entries.items():
            array = np.asarray(value)
            require(
                name not in others,
                f"the probe returns {name!r}, which is also the name of a statistic",
                argument="probe",
                value=name,
                remedy="choose another name",
            )
            require(
                name not in (*_OWN, *axes) and array.ndim == len(axes) and not set(axes) & set(_OWN),
                f"the probe returns {name!r} with the axes {tuple(axes)} and a value of shape {array.shape}",
                argument="probe",
                value=name,
                remedy=f"name each axis, and use distinct names other than the reserved names {', '.join(_OWN)}",
            )
            found[name] = (tuple(axes), array)
        return found


def observed(
    run: Run,
    results: Sequence[Any],
    done: int,
    attributes: Mapping[str, Any],
    *,
    probe: Probed | None,
    return_networks: bool,
) -> Any:
    """Build the record of a run, with its networks if `return_networks` is true.

    Args:
        run: The specification of the run.
        results: States and curves for each part of the members.
        done: Number of completed steps.
        attributes: Attributes of the record.
        probe: Collected results of the probe, or None.
        return_networks: Whether to also return the networks.

    Raises:
        DivergenceError: If all members diverged.
    """
    ensemble, problem, recorded = run.ensemble, run.problem, run.steps.recorded
    states, curves = ensemble.joined([(states._replace(optimizer=()), curves) for states, curves in results])
    members, axis = tuple(ensemble.dimensions), len(ensemble.shape)
    curves = {name: curve[(slice(None),) * axis + (slice(len(recorded)),)] for name, curve in curves.items()}
    diverged, diverged_loss = _diverged(run, states, curves["loss"], done)
    curves = {name: _ended(curve, diverged, recorded) for name, curve in curves.items()}

    extra: dict[str, Any] = {"time": _time(run, curves)}
    if problem.clocked:
        extra["applied_rate"] = ((*members, "step"), curves.pop("applied_rate"))
    if run.steps.epochs is not None:
        extra["epoch"] = (("step",), run.steps.epochs)
    if np.any(diverged >= 0):
        extra |= {"diverged_step": (members, diverged), "diverged_loss": (members, diverged_loss)}
    axes = {name: () for name in ("accuracy", "test_loss", "test_accuracy") if name in curves}
    axes |= {name: own for name, _, own, _ in problem.statistics}
    coordinates: dict[str, Any] = {}
    for (name, statistic), own in zip(problem.step_statistics, states.accumulated, strict=True):
        if isinstance(statistic, Sampled):
            steps = np.array(statistic.steps)
            values = _ended(own[0], diverged, steps)
            extra[name] = ((*members, "sampled_step", *statistic.dimensions), values)
            coordinates["sampled_step"] = steps
        else:
            axes[name] = tuple(statistic.dimensions)
    for name, (own, curve) in ({} if probe is None else probe.curves()).items():
        axes[name], curves[name] = own, _ended(curve, diverged, recorded)
    record = ensemble.record(
        ("step", recorded), curves, axes, extra, {**attributes, "loss_over": _loss_over(run)}, coordinates
    )
    if done < run.steps.count and not np.all(diverged >= 0):
        # The run ended at a deadline.
        stopped = f"at step {done} of {run.steps.count}"
        record = record.sel(step=recorded[recorded <= done]).assign_attrs(stopped=stopped)
    if not return_networks:
        return record
    return record, ensemble.network(eqx.combine(states.weights, states.carried))


def _ended(curve: np.ndarray, diverged: np.ndarray, recorded: np.ndarray) -> np.ndarray:
    """Set the curve of each diverged member to NaN, starting at the step at which it diverged."""
    past = (diverged[..., None] >= 0) & (recorded >= diverged[..., None])
    if not past.any():
        return curve
    ended = np.where(past.reshape(*past.shape, *(1,) * (curve.ndim - past.ndim)), np.nan, curve)
    return ended.astype(curve.dtype) if curve.dtype.kind == "f" else ended


def _time(run: Run, curves: dict[str, np.ndarray]) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the sum of the learning rates, without ensemble dimensions if it is the same for all members."""
    ensemble, recorded = run.ensemble, run.steps.recorded
    if run.problem.clocked:
        time = curves.pop("time")
        rows = time.reshape(-1, len(recorded))
        if np.all(rows == rows[0]):
            return ("step",), rows[0]
        return (*ensemble.dimensions, "step"), time
    rates = ensemble.settings.get("learning_rate", ensemble.dimensions.get("learning_rate"))
    rate = np.asarray(max(rates.values()) if isinstance(rates, Mapping) else rates)
    time = np.multiply.outer(rate, recorded)
    return ("learning_rate", "step")[-time.ndim :], time


def _loss_over(run: Run) -> str:
    stream = run.problem.sampler.stream
    if not isinstance(stream, Stream):
        return "all data"
    if stream.has_expectation and run.problem.loss == Loss():
        return "the whole distribution"
    return f"{EVALUATED} fresh samples at each recorded step"


def _diverged(run: Run, states: State, loss: np.ndarray, done: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the step at which each member diverged (−1 for the others), and its loss at this step.

    Diverged members cause a warning, or an error if all members diverged.
    """
    recorded, axes = run.steps.recorded, len(run.ensemble.shape)
    with np.errstate(invalid="ignore"):
        limit = np.maximum(EXPLODED * np.abs(loss[..., :1]), np.asarray(states.limit)[..., None])
        beyond = ~(np.abs(loss) <= limit) & (recorded <= done)
    step, value = np.array(states.diverged, np.int64), np.array(states.diverged_loss, float)
    at = np.argmax(beyond, axis=-1)
    recorded_first = beyond.any(axis=-1) & ((step < 0) | (recorded[at] < step))
    step = np.where(recorded_first, recorded[at], step)
    value = np.where(recorded_first, np.take_along_axis(loss, at[..., None], -1)[..., 0], value)
    value = np.where(step < 0, np.nan, value)
    leaves = jax.tree.leaves(states.weights)
    finite = [np.isfinite(leaf).all(axis=tuple(range(axes, leaf.ndim))) for leaf in leaves]
    step = np.where((step < 0) & ~np.all(finite, axis=0), done, step)
    if np.any(step >= 0):
        _report(run, states, step, value)
    return step, value


def _report(run: Run, states: State, steps: np.ndarray, losses: np.ndarray) -> None:
    """Raise `DivergenceError` if all members diverged, or `InputError` if a batch is invalid; otherwise warn."""
    failed = np.flatnonzero(np.ravel(steps) >= 0)
    first = int(failed[0])
    step, loss = int(np.ravel(steps)[first]), float(np.ravel(losses)[first])
    if not np.isfinite(loss):
        _require_valid_batch(run, states, first, step)
    if run.problem.clocked:
        time = float(np.ravel(np.asarray(states.clock[0]))[first])
    else:
        own = first if run.ensemble.dimensions else 0
        time = float(max(np.ravel(leaf)[own] for leaf in jax.tree.leaves(run.ensemble.rates))) * step
    event = f"exploded to {loss:.3g}" if np.isfinite(loss) else "became non-finite"
    sentence = f"the loss {event} by step {step}, time {time:.6g}{run.ensemble.named(failed)}"
    remedy = "choose a smaller learning rate or scale"
    if len(failed) == steps.size:
        raise DivergenceError(sentence, time=time, remedy=remedy)
    warnings.warn(DivergenceWarning(sentence, time=time, remedy=remedy), stacklevel=5)


@filter_jit
def _batch(sampler: Sampler, seed: Any, number: Any, step: Any, data: Batch | None, dtype: Any) -> Batch | None:
    return sampler.draw(sampler.key(seed, number), step, sampler.no_order(step), data, dtype)[0]


def _require_valid_batch(run: Run, states: State, member: int, step: int) -> None:
    """Check the batch at which the weights or the loss of a member became non-finite.

    The check runs outside compiled code, so layers can also raise errors.
    """
    problem, shape = run.problem, run.ensemble.shape

    def of_member(leaf: Any) -> Any:
        return np.asarray(leaf).reshape(-1, *leaf.shape[len(shape) :])[member] if shape else leaf

    number, place = (np.ravel(each)[member] for each in (run.members.number, run.members.place))
    with run.ensemble.precision():
        data = jax.tree.map(lambda values: values[place], problem.data) if problem.several else problem.data
        batch = _batch(problem.sampler, problem.seed, number, np.int32(step), data, run.ensemble.dtype)
        if batch is None:
            return
        for name, values in (("inputs", batch.inputs), ("targets", batch.targets)):
            require(
                bool(np.isfinite(values).all()),
                f"the {name} of the batch at step {step} are not finite",
                argument="task" if problem.sampler.augmentation is None else "augmentation",
                value=name,
                remedy="check the stream and the augmentation",
            )
        layers = jax.tree.leaves(problem.frame, is_leaf=lambda part: isinstance(part, BatchNormalisation))
        if any(isinstance(layer, BatchNormalisation) and layer.epsilon == 0 for layer in layers):
            weights, carried = jax.tree.map(of_member, (states.weights, states.carried))
            network = eqx.combine(weights, carried, problem.frame)
            getattr(network, "train_step_outputs", network)(jnp.asarray(batch.inputs))
