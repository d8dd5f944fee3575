"""Descent: training by discrete steps of an optimiser, on the whole data or on batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Int

from dynascope.arguments import require, require_count, require_seed
from dynascope.errors import DivergenceError, InputError
from dynascope.flows.ensemble import Ensemble, each_member, gather
from dynascope.flows.objective import Objective, Samples, Statistics, check_statistics
from dynascope.flows.recorded import recorded_steps
from dynascope.protocols import Average, Learnable, Network
from dynascope.tasks.stream import Stream
from dynascope.tasks.task import Task

__all__ = ["descend"]

_EVALUATED = 20_000  # fresh samples for the loss of a stream that has no formula for it
# A loss this many times that of the zero function, or the initial one, does not come back.
_EXPLODED = 1e8


def descend(
    network: Network | Sequence[Network],
    task: Learnable,
    *,
    steps: int,
    learning_rate: float | Sequence[float] | np.ndarray | Mapping[str, float],
    scale: float | Sequence[float] | np.ndarray = 1.0,
    optimizer: str | Callable[[Any], optax.GradientTransformation] = "sgd",
    batch_size: int | None = None,
    micro_batch_size: int | None = None,
    record_steps: int | Sequence[int] | np.ndarray | None = None,
    statistics: Mapping[str, tuple[Callable[[Any], Any], Sequence[str]]] | None = None,
    seed: int = 0,
    return_networks: bool = False,
) -> Any:
    """Train by discrete steps, θ ← θ − η ∇L(θ) or those of another optimiser, from θ(0) = scale · (the weights).

    The loss is L = ½ E‖f(x) − y‖² (mean over samples, sum over outputs). Lists of networks, scales and learning rates
    make an ensemble of all combinations, trained in one compiled program; their dimensions in the record are `seed`,
    `scale`, `learning_rate`, in this order, each present if a list was given. As η → 0 the curves against `time`
    approach those of `gradient_flow`, at the rate O(η) for plain descent.

    The dimension of the curves is `step`; `time` is the variable η · step, over (learning_rate, step) when there are
    several rates, and with the largest rate when layers have their own.

    A program is compiled for each structure (shapes, statistics, optimiser) and found again at the next call; pass
    the same function objects, not new lambdas, to benefit.

    Args:
        network: An equinox module, a function of a batch (n, d) with outputs (n, c), with float64 or float32 weights,
            whose precision is used throughout; or a list of modules that differ only in their weights.
        task: What it learns: a `Task`; a `Stream`, of which every step draws a batch of fresh samples; or an
            `Expectation`.
        steps: Number of steps.
        learning_rate: η, or several, or one rate for each layer as a mapping from the name of a weight array (or of a
            part of the network that holds some) to its rate.
        scale: Factor, or factors, on the initial weights.
        optimizer: "sgd", or a function from a learning rate to an optax transformation, such as `optax.adam`. Layer
            rates multiply the updates of the optimiser at rate one.
        batch_size: Samples in a step; None for all. The data are shuffled anew for each epoch, and what does not fill
            a batch at its end is left out. A stream needs one. All members of an ensemble see the same batches.
        micro_batch_size: Samples of which the gradient is computed at a time, a divisor of the batch; None for all. The
            gradient of the batch is the mean of theirs, which takes less memory and, where they stay in a core's cache,
            less time. Only for networks whose output for a sample does not depend on the other samples.
        record_steps: Number of steps at which to record, spread logarithmically from 0 to the last (None for 100), or
            these steps.
        statistics: Further quantities to record: name → (JAX function of the network, names of the axes of its value).
        seed: Seed of the batches.
        return_networks: Also return the network with its final weights; those of an ensemble have its dimensions in
            front.

    Returns:
        The record: `loss` (of all data) and each statistic along `step`, and `time`. The loss of a stream is exact
        where it has an expectation, and else a mean over 20 000 samples drawn at each recorded step; the attribute
        `loss_over` says which. With `return_networks`, the pair of the record and the network.

    Raises:
        InputError: An argument is outside its domain.
        DivergenceError: The loss or a weight left the finite numbers, or the loss exploded.

    Example:
        >>> from dynascope.networks.two_layer import TwoLayer
        >>> task = Task(np.eye(2), np.diag([2.0, 1.0]), name="two modes")
        >>> record = descend(TwoLayer(2, 4, 2), task, steps=300, learning_rate=0.1, scale=0.1, record_steps=[0, 300])
        >>> record["time"].to_numpy(), record["loss"].to_numpy().round(4)
        (array([ 0., 30.]), array([1.2545, 0.    ]))
    """
    require_count(steps=steps)
    steps = int(steps)
    require_seed(seed)
    require(
        optimizer == "sgd" or callable(optimizer),
        f"optimizer is {optimizer!r}",
        argument="optimizer",
        value=str(optimizer),
        remedy="choose sgd, or give a function from a learning rate to an optax transformation",
    )
    batch_size = _checked_batch(batch_size, task)
    parts = _parts(micro_batch_size, task.samples if isinstance(task, Task) and batch_size is None else batch_size)
    checked = check_statistics(statistics)
    recorded = _recorded(record_steps, steps)
    ensemble = gather(network, task, scale, learning_rate)
    make_optimizer = optax.sgd if isinstance(optimizer, str) else optimizer
    # The first count leads to the first recorded step, the last one from there to the end.
    counts = np.diff(np.concatenate([[0], recorded, [steps]]))
    layerwise, many = isinstance(learning_rate, Mapping), bool(ensemble.dimensions)
    result = ensemble.run(_train, counts, np.asarray(seed), checked, make_optimizer, batch_size, parts, layerwise, many)
    rate = np.asarray(max(learning_rate.values()) if isinstance(learning_rate, Mapping) else learning_rate)
    time = np.multiply.outer(rate, recorded)
    _raise_if_diverged(ensemble, result, recorded, time)

    record = ensemble.record(
        ("step", recorded),
        result["curves"],
        checked,
        {"time": (("learning_rate", "step")[-time.ndim :], time)},
        {
            "flow": "descent",
            "optimizer": optimizer if isinstance(optimizer, str) else getattr(optimizer, "__name__", str(optimizer)),
            "batch_size": batch_size,
            "batch_seed": seed,
            "loss_over": _loss_over(task),
        },
    )
    return (record, ensemble.network(result["weights"])) if return_networks else record


@eqx.filter_jit
def _train(
    objective: Objective,
    weights: Any,
    rates: Any,
    counts: Any,
    seed: Any,
    statistics: Statistics,
    make_optimizer: Callable[[Any], optax.GradientTransformation],
    batch_size: int | None,
    parts: int,
    layerwise: bool,
    many: bool,
) -> dict[str, Any]:
    average: Any = objective.average
    stream = _stream(average)
    samples = len(average.inputs) if batch_size is not None and stream is None else 1
    key, dtype = jax.random.key(seed), jax.tree.leaves(weights)[0].dtype

    def drawn(frame: Any, stream: Stream, key: Any, size: int) -> Objective:
        inputs, targets = stream.sample(key, size, dtype=dtype)[:2]
        return Objective(frame, Samples(inputs, targets))

    def batch(step: Any, order: Any) -> tuple[Objective, Any]:
        if batch_size is None:
            return objective, order
        if stream is not None:
            return drawn(objective.frame, stream, jax.random.fold_in(key, step), batch_size), order
        epoch, place = jnp.divmod(step, samples // batch_size)
        # Batches are common to all members, so that this remains a branch when members are batched.
        order = jax.lax.cond(
            place == 0, lambda: jax.random.permutation(jax.random.fold_in(key, epoch), samples), lambda: order
        )
        rows = jax.lax.dynamic_slice_in_dim(order, place * batch_size, batch_size)
        return Objective(objective.frame, Samples(average.inputs[rows], average.targets[rows])), order

    arrays, rest = eqx.partition(objective, eqx.is_array)

    def measure_all_data(weights: Any, step: Any, key: Any, arrays: Any) -> dict[str, Any]:
        measured: Objective = eqx.combine(arrays, rest)
        if stream is not None and stream.has_expectation:
            measured = Objective(measured.frame, stream.expectation())
        elif stream is not None:
            # Keys of batches have one number after the seed, so these are others.
            evaluation = jax.random.fold_in(jax.random.fold_in(key, step), _EVALUATED)
            measured = drawn(measured.frame, stream, evaluation, _EVALUATED)
        return measured.measure(weights, statistics)

    if batch_size is not None:
        # All data are more than a batch: of the members that train together one is measured at a time.
        measure_all_data = jax.custom_batching.sequential_vmap(measure_all_data)

    def member(weights: Any, rates: Any) -> dict[str, Any]:
        optimizer = make_optimizer(1.0 if layerwise else rates)

        def step(index: Any, carry: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
            weights, state, order = carry
            current, order = batch(index, order)
            updates, state = optimizer.update(current.gradient(weights, parts), state, weights)
            if layerwise:
                updates = jax.tree.map(jnp.multiply, updates, rates)
            return optax.apply_updates(weights, updates), state, order

        def segment(carry: tuple[Any, Any], count: Any) -> tuple[tuple[Any, Any], dict[str, Any]]:
            done, state = carry
            state = jax.lax.fori_loop(done, done + count, step, state)
            return (done + count, state), measure_all_data(state[0], done + count, key, arrays)

        start = (weights, optimizer.init(weights), jnp.arange(samples))
        (done, state), curves = jax.lax.scan(segment, (jnp.zeros((), counts.dtype), start), counts[:-1])
        final, _, _ = jax.lax.fori_loop(done, done + counts[-1], step, state)
        finite = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(final)]).all()
        return {"curves": curves, "weights": final, "finite": finite}

    first, _ = batch(0, jnp.arange(samples))
    return each_member(member, first, weights, rates, many=many, parts=parts)


def _checked_batch(batch_size: int | None, task: Learnable) -> int | None:
    """The size as a plain number, which a compiled program can be found by."""
    whole = isinstance(batch_size, int | np.integer) and batch_size >= 1
    if isinstance(task, Stream):
        _require_hashable(task)
        remedy = "choose how many fresh samples each step of a stream draws"
    else:
        samples = task.samples if isinstance(task, Task) else 0
        whole = batch_size is None or (whole and batch_size <= samples)
        remedy = f"choose a whole number between 1 and the {samples} samples of the task"
    require(
        whole,
        f"batch_size is {batch_size}",
        argument="batch_size",
        value=batch_size,
        remedy=remedy if isinstance(task, Task | Stream) else "an expectation has no samples",
    )
    return None if batch_size is None else int(batch_size)


def _require_hashable(stream: Stream) -> None:
    try:
        hash(stream)
    except TypeError as error:
        raise InputError(
            f"the stream {type(stream).__name__} cannot be hashed, so that no compiled program can be found for it",
            argument="task",
            value=type(stream).__name__,
            remedy="make it a frozen dataclass of plain numbers and strings",
        ) from error


def _parts(micro_batch_size: int | None, batch: int | None) -> int:
    if micro_batch_size is None:
        return 1
    whole = isinstance(micro_batch_size, int | np.integer) and micro_batch_size >= 1
    require(
        batch is not None and whole and batch % micro_batch_size == 0,
        f"micro_batch_size is {micro_batch_size}",
        argument="micro_batch_size",
        value=micro_batch_size,
        remedy=f"choose a divisor of the batch of {batch} samples" if batch else "an expectation has no samples",
    )
    return (batch or 0) // int(micro_batch_size)


def _stream(average: Average) -> Stream | None:
    return average if isinstance(average, Stream) else None


def _loss_over(task: Learnable) -> str:
    if not isinstance(task, Stream):
        return "all data"
    return "the whole distribution" if task.has_expectation else f"{_EVALUATED} fresh samples at each recorded step"


def _raise_if_diverged(ensemble: Ensemble, result: dict[str, Any], recorded: np.ndarray, time: np.ndarray) -> None:
    loss = result["curves"]["loss"]
    with np.errstate(invalid="ignore"):
        power = ensemble.task.target_power if isinstance(ensemble.task, Task) else 0.0
        bad = ~(loss <= _EXPLODED * np.maximum(loss[..., :1], power / 2))
    # A weight may leave the finite numbers after the last recorded step.
    bad[..., -1] |= ~result["finite"]
    failed = np.flatnonzero(bad.any(axis=-1))
    if not len(failed):
        return
    index = int(np.argmax(bad.reshape(-1, len(recorded))[failed[0]]))
    at = float(np.broadcast_to(time, loss.shape).reshape(-1, len(recorded))[failed[0], index])
    raise DivergenceError(
        f"the loss left the finite numbers or exploded by step {recorded[index]}, time {at:.6g}"
        f"{ensemble.named(failed)}",
        time=at,
        remedy="choose a smaller learning rate or scale",
    )


def _recorded(record_steps: int | Sequence[int] | np.ndarray | None, steps: int) -> Int[np.ndarray, " step"]:
    if record_steps is None or isinstance(record_steps, int | np.integer):
        count = 100 if record_steps is None else int(record_steps)
        require_count(least=2, record_steps=count)
        return np.unique(np.concatenate([[0], np.geomspace(1, steps, count - 1).round().astype(np.int64)]))
    return recorded_steps("record_steps", record_steps, steps)
