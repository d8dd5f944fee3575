"""One step of training, and what is measured between two: the functions that the compiled loop is made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from dynascope.arguments import require
from dynascope.errors import InputError
from dynascope.flows.steps.batches import Batch, Batches
from dynascope.flows.steps.losses import Loss
from dynascope.flows.steps.optimizers import applied_rate, asked_by, made
from dynascope.flows.steps.step import Step
from dynascope.flows.steps.step_statistics import Sampled, StepStatistic
from dynascope.networks.batch_normalisation import running_statistics, trained_weights

__all__ = ["Member", "Problem", "Settings", "State", "Training"]

EVALUATED = 20_000  # fresh samples for the loss of a stream that has no formula for it
_TOGETHER = 1000  # samples at a time when nothing is trained
# A loss this many times that of the zero function, or the initial one, does not come back.
EXPLODED = 1e8


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the program is compiled for, besides the shapes.

    Attributes:
        loss: The loss.
        batches: How batches are drawn.
        parts: Number of micro-batches in a batch.
        layerwise: Whether rates are factors on the updates of an optimiser at rate one.
        clocked: Whether rates change on the way, and time has to be summed up.
        counts_right: Whether accuracies are recorded.
        half: Whether outputs are computed in bfloat16.
        several: Whether every network has its own data.
        statistics: Of networks: name, function, whether it takes the reference batch too.
        step_statistics: Of steps.
    """

    loss: Loss
    batches: Batches
    parts: int = 1
    layerwise: bool = False
    clocked: bool = False
    counts_right: bool = False
    half: bool = False
    several: bool = False
    statistics: tuple[tuple[str, Callable[..., Any], bool], ...] = ()
    step_statistics: tuple[tuple[str, StepStatistic], ...] = ()


class Problem(eqx.Module):
    """What all members share.

    Attributes:
        frame: The network without its weights.
        data: Training samples, with an axis over the tasks in front if there are several; None without samples.
        test: Test samples, likewise.
        reference: The samples that statistics are given; None for the training samples.
        average: A loss in closed form, instead of samples.
        optimizer: A transformation, or a function from a rate to one.
        schedule: The learning rate as a function of the number of updates, or None.
        target_power: E‖y‖² of the squared loss, shape () or (tasks,), zero for other losses.
    """

    frame: Any
    data: Batch | None
    test: Batch | None
    reference: Batch | None
    average: Any
    optimizer: Any
    schedule: Any
    target_power: Any


class Member(NamedTuple):
    """What belongs to a member and stays.

    Attributes:
        weights: Initial weights and running statistics.
        rates: Learning rate, or one for each weight array.
        number: Its number in the ensemble.
        place: Number of its network, and of its task if there are several.
    """

    weights: Any
    rates: Any
    number: Any
    place: Any


class State(NamedTuple):
    """What a step changes.

    Attributes:
        weights: What is trained.
        carried: Running statistics.
        optimizer: State of the optimiser.
        order: Order of the samples in this epoch.
        clock: Time, what its sum rounded off, and the last rate.
        accumulated: States of the step statistics.
        limit: The loss beyond which the run has diverged.
        diverged: Step at which it did, −1 as long as it has not; the weights stay as they were.
        diverged_loss: The loss there.
    """

    weights: Any
    carried: Any
    optimizer: Any
    order: Any
    clock: Any
    accumulated: Any
    limit: Any
    diverged: Any
    diverged_loss: Any


class Training:
    """The training of one member."""

    def __init__(self, problem: Problem, member: Member, seed: Any, settings: Settings):
        self.problem, self.member, self.settings = problem, member, settings
        self.dtype = jax.tree.leaves(member.weights)[0].dtype
        self.key = settings.batches.key(seed, member.number)
        self.data, self.test = self._own(problem.data), self._own(problem.test)
        self.reference = self.data if problem.reference is None else self._own(problem.reference)
        rate = 1.0 if settings.layerwise else member.rates
        with asked_by(problem.optimizer):
            self.optimizer = made(problem.optimizer, rate if problem.schedule is None else problem.schedule)

    def initial(self) -> State:
        """The state before the first step."""
        batches, dtype = self.settings.batches, self.dtype
        weights, carried = trained_weights(self.member.weights), running_statistics(self.member.weights)
        zero, order = jnp.zeros((), dtype), batches.first_order()
        with asked_by(self.problem.optimizer):
            optimizer = self.optimizer.init(weights)
        state = State(weights, carried, optimizer, order, (zero, zero, zero), (), zero, jnp.asarray(-1), zero)
        power = self.problem.target_power[self.member.place] if self.settings.several else self.problem.target_power

        def trial(function: Callable[[Step], Any]) -> Any:
            return jax.eval_shape(lambda: function(self._step(jnp.asarray(0), state)[0]))

        accumulated = tuple(each.initial(weights, trial) for _, each in self.settings.step_statistics)
        first = self.first_loss()
        largest = jnp.maximum(jnp.abs(first), jnp.asarray(power, dtype) / 2)
        limit = jnp.where(largest > 0, EXPLODED * largest, jnp.inf)
        return state._replace(accumulated=accumulated, limit=limit)

    def first_loss(self) -> Any:
        """The loss of the first batch at the initial weights."""
        batches = self.settings.batches
        batch, _ = batches.draw(self.key, jnp.asarray(0), batches.first_order(), self.data, self.dtype)
        weights, carried = trained_weights(self.member.weights), running_statistics(self.member.weights)
        return self._loss(weights, carried, batch)[0]

    def advance(self, index: Any, state: State) -> State:
        """The state after a step."""
        step, new = self._step(index, state)
        bad = ~(jnp.abs(step.loss) <= state.limit)
        alive = (state.diverged < 0) & ~bad
        accumulated = tuple(
            statistic.advance(own, step)
            for (_, statistic), own in zip(self.settings.step_statistics, state.accumulated, strict=True)
        )

        def unless_diverged(after: Any, before: Any) -> Any:
            return jax.tree.map(lambda one, other: jnp.where(alive, one, other), after, before)

        first = bad & (state.diverged < 0)
        return new._replace(
            weights=unless_diverged(new.weights, state.weights),
            carried=unless_diverged(new.carried, state.carried),
            accumulated=accumulated,
            diverged=jnp.where(first, index, state.diverged),
            diverged_loss=jnp.where(first, step.loss, state.diverged_loss),
        )

    def measure(self, state: State, step: Any) -> dict[str, Any]:
        """Loss, accuracy and statistics of the network, in evaluation."""
        network = eqx.combine(state.weights, state.carried, self.problem.frame)
        measured = self._evaluated(network, self.data, step)
        if self.test is not None:
            measured |= {f"test_{name}": value for name, value in self._evaluated(network, self.test, step).items()}
        for name, function, of_data in self.settings.statistics:
            measured[name] = jnp.asarray(function(network, *self.reference) if of_data else function(network))
        return measured

    def told(self, state: State) -> dict[str, Any]:
        """What is recorded of the steps up to now."""
        found = {
            name: jnp.asarray(statistic.value(own))
            for (name, statistic), own in zip(self.settings.step_statistics, state.accumulated, strict=True)
            if not isinstance(statistic, Sampled)
        }
        if self.settings.clocked:
            time, lost, rate = state.clock
            found |= {"time": time + lost, "applied_rate": rate}
        return found

    def _step(self, index: Any, state: State) -> tuple[Step, State]:
        weights, carried, settings = state.weights, state.carried, self.settings
        batch, order = settings.batches.draw(self.key, index, state.order, self.data, self.dtype)
        (loss, after), gradient = self._loss_and_gradient(weights, carried, batch)
        with asked_by(self.problem.optimizer):
            updates, optimizer = self.optimizer.update(
                gradient,
                state.optimizer,
                weights,
                value=loss,
                grad=gradient,
                value_fn=lambda weights: self._loss(weights, carried, batch)[0],
            )
        rate = self.member.rates
        if settings.layerwise:
            updates = jax.tree.map(jnp.multiply, updates, trained_weights(rate))
        elif settings.clocked:
            rate = applied_rate(self.problem.schedule, state.optimizer, optimizer, index, self.dtype)
        step = Step(
            index=index,
            weights=weights,
            gradient=gradient,
            update=updates,
            optimizer_state=optimizer,
            loss=loss,
            learning_rate=rate,
            batch=batch,
            network=lambda: eqx.combine(weights, carried, self.problem.frame),
            full_gradient=lambda: self._full_gradient(weights, carried),
            initial_weights=trained_weights(self.member.weights),
        )
        clock = _later(state.clock, rate) if settings.clocked else state.clock
        new = optax.apply_updates(weights, updates)
        return step, state._replace(weights=new, carried=after, optimizer=optimizer, order=order, clock=clock)

    def _own(self, batch: Batch | None) -> Any:
        if batch is None or not self.settings.several:
            return batch
        return jax.tree.map(lambda values: values[self.member.place], batch)

    def _loss(self, weights: Any, carried: Any, batch: Batch | None) -> tuple[Array, Any]:
        """The loss of a batch in training, and the new running statistics."""
        if batch is None:
            return self.problem.average.loss(eqx.combine(weights, carried, self.problem.frame)), carried
        inputs = jnp.asarray(batch.inputs)
        if self.settings.half:
            weights = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), weights)
            inputs = inputs.astype(jnp.bfloat16) if jnp.issubdtype(inputs.dtype, jnp.floating) else inputs
        network = eqx.combine(weights, carried, self.problem.frame)
        if hasattr(network, "train_step_outputs"):
            outputs, new = _applied(network.train_step_outputs, network, inputs)
            after = running_statistics(eqx.filter(new, eqx.is_inexact_array))
            after = jax.tree.map(lambda old, now: now.astype(old.dtype), carried, after)
        else:
            outputs, after = _applied(network, network, inputs), carried
        return self._each(network, outputs, batch).sum() / len(inputs), after

    def _each(self, network: Any, outputs: Any, batch: Batch) -> Array:
        """The loss of every sample."""
        inputs, targets, loss = batch.inputs, batch.targets, self.settings.loss
        numbers = not jnp.issubdtype(targets.dtype, jnp.integer)
        # A loss of the user's own may compare outputs with targets of another shape.
        if isinstance(loss.kind, str):
            fits = outputs.shape == targets.shape if numbers else outputs.shape[:-1] == targets.shape
            require(
                fits and outputs.ndim > 1,
                f"the network's outputs have shape {outputs.shape}",
                argument="network",
                value=outputs.shape,
                remedy=f"pass a function of a batch of shape {inputs.shape} with outputs of shape "
                f"{targets.shape if numbers else (*targets.shape, 'classes')}",
            )
        values = loss.each(outputs.astype(self.dtype), targets)
        require(
            values.shape == inputs.shape[:1],
            f"the loss {loss.name} has values of shape {values.shape} for {len(inputs)} samples",
            argument="loss",
            value=values.shape,
            remedy="return one value for each sample, or one for each entry of the outputs",
        )
        return values

    def _loss_and_gradient(self, weights: Any, carried: Any, batch: Batch | None) -> tuple[tuple[Array, Any], Any]:
        function, parts = jax.value_and_grad(self._loss, has_aux=True), self.settings.parts
        if parts == 1:
            return function(weights, carried, batch)

        def add(sums: Any, part: Batch) -> tuple[Any, None]:
            (loss, after), gradient = function(weights, sums[1], part)
            return (sums[0] + loss, after, jax.tree.map(jnp.add, sums[2], gradient)), None

        nothing = jnp.zeros((), self.dtype), carried, jax.tree.map(jnp.zeros_like, weights)
        split = jax.tree.map(lambda values: values.reshape(parts, -1, *values.shape[1:]), batch)
        (loss, after, gradient), _ = jax.lax.scan(add, nothing, split)
        return (loss / parts, after), jax.tree.map(lambda sum_of_parts: sum_of_parts / parts, gradient)

    def _full_gradient(self, weights: Any, carried: Any) -> Any:
        average = self._stream_average()
        if average is not None:
            return jax.grad(lambda weights: average.loss(eqx.combine(weights, carried, self.problem.frame)))(weights)
        return jax.grad(lambda weights: self._loss(weights, carried, self.data)[0])(weights)

    def _stream_average(self) -> Any:
        """The formula of the loss over the whole distribution of a stream, if there is one."""
        stream = self.settings.batches.stream
        # The formula is that of the squared loss.
        known = stream is not None and stream.has_expectation and self.settings.loss == Loss()
        return stream.expectation() if known and stream is not None else None

    def _evaluated(self, network: Any, data: Batch | None, step: Any) -> dict[str, Any]:
        batches = self.settings.batches
        if data is None and batches.stream is not None:
            average = self._stream_average()
            if average is not None:
                return {"loss": average.loss(network)}
            # Keys of batches have one number after the seed, so these are others.
            data = batches.fresh(
                jax.random.fold_in(jax.random.fold_in(self.key, step), EVALUATED), EVALUATED, self.dtype
            )
        if data is None:
            return {"loss": self.problem.average.loss(network)}
        loss, right = self._means(network, data)
        return {"loss": loss, "accuracy": right} if self.settings.counts_right else {"loss": loss}

    def _means(self, network: Any, data: Batch) -> tuple[Array, Array]:
        """Mean loss and accuracy, some samples at a time."""
        loss, samples = self.settings.loss, len(data.inputs)

        def sums(batch: Batch, counted: Any) -> Array:
            outputs = _applied(network, network, jnp.asarray(batch.inputs)).astype(self.dtype)
            each = self._each(network, outputs, batch)
            right = loss.right(outputs, batch.targets) if self.settings.counts_right else jnp.zeros_like(each)
            return jnp.stack([jnp.sum(jnp.where(counted, values, 0)) for values in (each, right)]).astype(self.dtype)

        if samples <= _TOGETHER:
            return tuple(sums(data, True) / samples)  # type: ignore[return-value]

        def block(first: Any) -> Array:
            rows = first + jnp.arange(_TOGETHER)
            # The last block is filled up with samples that do not count.
            kept = jnp.minimum(rows, samples - 1)
            return sums(jax.tree.map(lambda values: values[kept], data), rows < samples)

        blocks = jax.lax.map(block, _TOGETHER * jnp.arange(-(-samples // _TOGETHER)))
        return tuple(blocks.sum(axis=0) / samples)  # type: ignore[return-value]


def _later(clock: Any, rate: Any) -> Any:
    time, lost, _ = clock
    new = time + rate
    rest = jnp.where(time >= rate, (time - new) + rate, (rate - new) + time)
    return new, lost + rest, rate


def _applied(function: Callable[[Any], Any], network: Any, inputs: Any) -> Any:
    try:
        return function(inputs)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the network cannot be applied to the inputs ({str(error).splitlines()[0].rstrip('.')})",
            argument="network",
            value=type(network).__name__,
            remedy=f"pass a function of a batch of shape {inputs.shape}",
        ) from error
