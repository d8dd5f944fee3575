"""What came out of a run, as a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from dynascope.arguments import require, shown
from dynascope.tasks.stream import Stream
from dynascope.training.chunks import Run
from dynascope.training.divergence import Divergence, diverged
from dynascope.training.losses import Loss
from dynascope.training.statistics import Sampled
from dynascope.training.trainer import EVALUATED

__all__ = ["Probed", "observed"]

_OWN = (
    *("epoch", "time", "loss", "accuracy", "test_loss", "test_accuracy"),
    *("applied_rate", "diverged_step", "diverged_loss"),
)


class Probed:
    """A function of the network that is called at recorded steps, and what it found.

    Args:
        run: What is trained.
        probe: The function, with the result {name: (names of the axes, value)}.
    """

    def __init__(self, run: Run, probe: Callable[[Any], Mapping[str, tuple[Sequence[str], Any]]]):
        self._run, self._probe, self._found = run, probe, []

    def __call__(self, results: Sequence[Any]) -> None:
        """Measure the networks of all members."""
        ensemble = self._run.ensemble
        weights = ensemble.joined([eqx.combine(states.weights, states.carried) for states, _ in results])
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[len(ensemble.shape) :]), weights)
        count = int(np.prod(ensemble.shape))
        each = [jax.tree.map(lambda leaf, own=own: leaf[own], flat) for own in range(count)]
        with ensemble.precision():
            self._found.append([self._measured(ensemble.network(own)) for own in each])

    def curves(self) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """What was found, with the dimensions of the ensemble and `step` in front of the axes that are named."""
        names = self._found[0][0].keys()
        every = [one for row in self._found for one in row]
        require(
            all(one.keys() == names for one in every),
            "the probe gives other names later than at first",
            argument="probe",
            remedy="give the same quantities each time",
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
        entries = self._probe(network)
        require(
            isinstance(entries, Mapping)
            and all(isinstance(each, tuple) and len(each) == 2 for each in entries.values()),
            f"the probe gives {type(entries).__name__} of {shown(entries)}",
            argument="probe",
            value=type(entries).__name__,
            remedy="return {name: (names of the axes, value)}",
        )
        run = self._run
        others = {name for name, *_ in (*run.settings.statistics, *run.problem.step_statistics)}
        for name, (axes, value) in entries.items():
            array = np.asarray(value)
            require(
                name not in others,
                f"the probe gives {name!r}, which is one of the statistics too",
                argument="probe",
                value=name,
                remedy="choose a name of its own",
            )
            require(
                name not in (*_OWN, *axes) and array.ndim == len(axes) and not set(axes) & set(_OWN),
                f"the probe gives {name!r} the axes {tuple(axes)} and a value of shape {array.shape}",
                argument="probe",
                value=name,
                remedy=f"name each axis, as records do, and choose no name of an axis and none of {', '.join(_OWN)}",
            )
            found[name] = (tuple(axes), array)
        return found


def observed(
    run: Run,
    results: Sequence[Any],
    done: int,
    attributes: Mapping[str, Any],
    *,
    dimensions: Mapping[str, Sequence[str]],
    epoch: np.ndarray | None,
    probe: Probed | None,
    return_networks: bool,
) -> Any:
    """The record of a run, and the networks if asked for.

    Args:
        run: What was trained.
        results: For each part of the members their states and curves.
        done: Number of steps made.
        attributes: What the record says of the run.
        dimensions: Names of the axes of the statistics of networks.
        epoch: Epochs after which was recorded, if these are whole.
        probe: What was measured outside of the program, or None.
        return_networks: Whether to return the networks too.

    Raises:
        DivergenceError: All members diverged.
    """
    ensemble, of_steps, recorded = run.ensemble, run.problem.step_statistics, run.recorded
    states, curves = ensemble.joined([(states._replace(optimizer=()), curves) for states, curves in results])
    within = (slice(None),) * len(ensemble.shape) + (slice(len(recorded)),)
    curves = {name: curve[within] for name, curve in curves.items()}
    divergence = diverged(run, states, curves, done)
    curves = {name: _ended(curve, divergence, recorded, len(ensemble.shape)) for name, curve in curves.items()}

    members = tuple(ensemble.dimensions)
    extra: dict[str, Any] = {"time": _time(run, curves)}
    if run.settings.clocked:
        extra["applied_rate"] = ((*members, "step"), curves.pop("applied_rate"))
    if epoch is not None:
        extra["epoch"] = (("step",), epoch)
    if np.any(divergence.step >= 0):
        extra |= {"diverged_step": (members, divergence.step), "diverged_loss": (members, divergence.loss)}
    coordinates: dict[str, Any] = {}
    for (name, statistic), own in zip(of_steps, states.accumulated, strict=True):
        if isinstance(statistic, Sampled):
            steps = np.array(statistic.steps)
            values = _ended(own[0], divergence, steps, len(ensemble.shape))
            extra[name] = ((*members, "sampled_step", *statistic.dimensions), values)
            coordinates["sampled_step"] = steps
    axes = {
        **{name: () for name in ("accuracy", "test_loss", "test_accuracy") if name in curves},
        **dimensions,
        **{name: tuple(each.dimensions) for name, each in of_steps if not isinstance(each, Sampled)},
    }
    for name, (own, curve) in ({} if probe is None else probe.curves()).items():
        axes[name], curves[name] = own, _ended(curve, divergence, recorded, len(ensemble.shape))
    record = ensemble.record(
        ("step", recorded),
        curves,
        axes,
        extra,
        {**attributes, "loss_over": _loss_over(run)},
        coordinates,
    )
    if done < run.steps and not np.all(divergence.step >= 0):
        # A deadline ended it.
        record = record.sel(step=recorded[recorded <= done]).assign_attrs(stopped=f"at step {done} of {run.steps}")
    if not return_networks:
        return record
    return record, ensemble.network(eqx.combine(states.weights, states.carried))


def _ended(curve: np.ndarray, divergence: Divergence, recorded: np.ndarray, axes: int) -> np.ndarray:
    """The curve with NaN from where a member diverged."""
    past = (divergence.step[..., None] >= 0) & (recorded >= divergence.step[..., None])
    if not past.any():
        return curve
    ended = np.where(past.reshape(*past.shape, *(1,) * (curve.ndim - axes - 1)), np.nan, curve)
    return ended.astype(curve.dtype) if curve.dtype.kind == "f" else ended


def _time(run: Run, curves: dict[str, np.ndarray]) -> tuple[tuple[str, ...], np.ndarray]:
    """Sum of the learning rates; without the dimensions of members where it is theirs all."""
    ensemble, recorded = run.ensemble, run.recorded
    if run.settings.clocked:
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
    stream = run.settings.batches.stream
    if not isinstance(stream, Stream):
        return "all data"
    if stream.has_expectation and run.settings.loss == Loss():
        return "the whole distribution"
    return f"{EVALUATED} fresh samples at each recorded step"
