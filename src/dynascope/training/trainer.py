"""The training step and the recording of quantities, from which the compiled loop is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from dynascope.networks.batch_normalisation import running_statistics, trained_weights
from dynascope.protocols import SampledNetwork
from dynascope.training.batches import Batch
from dynascope.training.losses import Loss, applied, evaluated, losses
from dynascope.training.optimizers import applied_rate, optimizer_errors, transformation
from dynascope.training.specification import Member, Problem
from dynascope.training.statistics import Sampled, StepStatistic, made_once
from dynascope.training.step import Step
from dynascope.validation import calling, require

__all__ = ["EVALUATED", "EXPLODED", "State", "Trainer"]

EVALUATED = 20_000  # fresh samples for the loss of a stream without a closed form
# A loss that exceeds the initial loss and that of the zero function by this factor does not recover.
EXPLODED = 1e8


class State(NamedTuple):
    """The state of a member, which changes at every step.

    Attributes:
        weights: Trained weights.
        carried: Running statistics.
        optimizer: State of the optimiser.
        clock: The time, its accumulated rounding error, and the latest learning rate.
        accumulated: States of the step statistics.
        limit: The loss above which the run has diverged.
        diverged: Step of the divergence, after which the weights do not change; −1 if the member has not diverged.
        diverged_loss: The loss at the divergence.
    """

    weights: Any
    carried: Any
    optimizer: Any
    clock: Any
    accumulated: Any
    limit: Any
    diverged: Any
    diverged_loss: Any


class Trainer:
    """Trains one member of a run."""

    def __init__(self, problem: Problem, member: Member):
        self.problem, self.member = problem, member
        self.dtype = jax.tree.leaves(member.weights)[0].dtype
        self.key = problem.sampler.key(problem.seed, member.number)
        self.weights, self.carried = trained_weights(member.weights), running_statistics(member.weights)
        self.data, self.test = self._own(problem.data), self._own(problem.test)
        self.reference = self.data if problem.reference is None else self._own(problem.reference)
        rate = 1.0 if problem.layerwise else member.rates
        self.optimizer = transformation(problem.optimizer, rate, problem.schedule)

    def initial(self) -> State:
        """Return the state before the first step. The first step sets the loss limit."""
        zero = jnp.zeros((), self.dtype)
        with optimizer_errors(self.problem.optimizer):
            optimizer = self.optimizer.init(self.weights)
        state = State(self.weights, self.carried, optimizer, (zero, zero, zero), (), zero, jnp.asarray(-1), zero)
        statistics = self.problem.step_statistics
        if not statistics:
            return state
        # Trace the step once for the shapes of all functions of it.
        index = jnp.asarray(0)
        parts = jax.eval_shape(lambda: self._step(index, state, self.problem.sampler.no_order(index))[0])

        def trial(function: Callable[[Step], Any]) -> Any:
            return jax.eval_shape(lambda parts: function(self._seen(state, parts)), parts)

        def begun(name: str, statistic: StepStatistic, _: Any) -> Any:
            with calling("statistics", name, "give JAX functions of a Step that return a single array"):
                return statistic.initial(self.weights, trial)

        return state._replace(accumulated=made_once(statistics, [None] * len(statistics), begun))

    def first_loss(self) -> Any:
        """Return the loss of the first batch at the initial weights."""
        sampler, first = self.problem.sampler, jnp.asarray(0)
        batch, _ = sampler.draw(self.key, first, sampler.no_order(first), self.data, self.dtype)
        return self._loss(self.weights, self.carried, batch, self._network_key(first))[0]

    def advance(self, index: Any, carry: tuple[State, Any]) -> tuple[State, Any]:
        """Return the state and the order of the samples after a step."""
        state, order = carry
        parts, new, order = self._step(index, state, order)
        step = self._seen(state, parts)
        limit = jnp.where(index == 0, self._limit(step.loss), state.limit)
        bad = ~(jnp.abs(step.loss) <= limit)
        alive = (state.diverged < 0) & ~bad
        accumulated = made_once(
            self.problem.step_statistics, state.accumulated, lambda _, statistic, own: statistic.advance(own, step)
        )

        def unless_diverged(after: Any, before: Any) -> Any:
            return jax.tree.map(lambda one, other: jnp.where(alive, one, other), after, before)

        first = bad & (state.diverged < 0)
        new = new._replace(
            weights=unless_diverged(new.weights, state.weights),
            carried=unless_diverged(new.carried, state.carried),
            accumulated=accumulated,
            limit=limit,
            diverged=jnp.where(first, index, state.diverged),
            diverged_loss=jnp.where(first, step.loss, state.diverged_loss),
        )
        return new, order

    def recorded(self, state: State, step: Any) -> dict[str, Any]:
        """Return the losses, accuracies and statistics of the network in evaluation mode, and the step statistics."""
        network = eqx.combine(state.weights, state.carried, self.problem.frame)
        found = self._evaluated(network, self.data, step)
        if self.test is not None:
            found |= {f"test_{name}": value for name, value in self._evaluated(network, self.test, step).items()}
        for name, function, _, of_data in self.problem.statistics:
            with calling("statistics", name, "give a JAX function of the network, or of network, inputs and targets"):
                found[name] = jnp.asarray(function(network, *self.reference) if of_data else function(network))
        for (name, statistic), own in zip(self.problem.step_statistics, state.accumulated, strict=True):
            if not isinstance(statistic, Sampled):
                with calling("statistics", name, "return a single array"):
                    found[name] = jnp.asarray(statistic.value(own))
        if self.problem.clocked:
            time, lost, rate = state.clock
            found |= {"time": time + lost, "applied_rate": rate}
        return found

    def _step(self, index: Any, state: State, order: Any) -> tuple[dict[str, Any], State, Any]:
        """Return the arrays of a `Step`, and the state and the order of the samples after it."""
        weights, carried, problem = state.weights, state.carried, self.problem
        batch, order = problem.sampler.draw(self.key, index, order, self.data, self.dtype)
        key = self._network_key(index)
        (loss, after), gradient = self._loss_and_gradient(weights, carried, batch, key)
        with optimizer_errors(problem.optimizer):
            updates, optimizer = self.optimizer.update(
                gradient,
                state.optimizer,
                weights,
                value=loss,
                grad=gradient,
                value_fn=lambda weights: self._loss(weights, carried, batch, key)[0],
            )
        rate, clock = self.member.rates, state.clock
        if problem.layerwise:
            updates = jax.tree.map(jnp.multiply, updates, trained_weights(rate))
        elif problem.clocked:
            rate = applied_rate(problem.schedule, state.optimizer, optimizer, index, self.dtype)
            clock = _later(clock, rate)
        parts = {
            "index": index,
            "weights": weights,
            "gradient": gradient,
            "update": updates,
            "optimizer_state": optimizer,
            "loss": loss,
            "learning_rate": rate,
            "batch": batch,
        }
        new = optax.apply_updates(weights, updates)
        return parts, state._replace(weights=new, carried=after, optimizer=optimizer, clock=clock), order

    def _seen(self, state: State, parts: dict[str, Any]) -> Step:
        return Step(
            **parts,
            network=lambda: eqx.combine(parts["weights"], state.carried, self.problem.frame),
            full_gradient=lambda: self._full_gradient(
                parts["weights"], state.carried, self._network_key(parts["index"])
            ),
            initial_weights=self.weights,
        )

    def _limit(self, first: Any) -> Any:
        """Return the loss above which a run has diverged, given its first loss."""
        power = self._own(self.problem.target_power)
        largest = jnp.maximum(jnp.abs(first), jnp.asarray(power, self.dtype) / 2)
        return jnp.where(largest > 0, EXPLODED * largest, jnp.inf)

    def _own(self, arrays: Any) -> Any:
        """Return the arrays of the task of this member."""
        return jax.tree.map(lambda values: values[self.member.place], arrays) if self.problem.several else arrays

    def _network_key(self, index: Any) -> Any:
        return self.problem.sampler.network_key(self.key, index)

    def _loss(self, weights: Any, carried: Any, batch: Batch | None, key: Any) -> tuple[Array, Any]:
        """Return the loss of a batch in training mode, and the updated running statistics."""
        if batch is None:
            return self.problem.average.loss(eqx.combine(weights, carried, self.problem.frame)), carried
        inputs = jnp.asarray(batch.inputs)
        if self.problem.half:
            weights = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), weights)
            inputs = inputs.astype(jnp.bfloat16) if jnp.issubdtype(inputs.dtype, jnp.floating) else inputs
        network = eqx.combine(weights, carried, self.problem.frame)
        if hasattr(network, "train_step_outputs"):
            outputs, new = applied(network.train_step_outputs, network, inputs)
            after = running_statistics(eqx.filter(new, eqx.is_inexact_array))
            after = jax.tree.map(lambda old, now: now.astype(old.dtype), carried, after)
        elif isinstance(network, SampledNetwork):
            outputs, after = applied(lambda x: network.sampled_outputs(x, key), network, inputs), carried
        else:
            outputs, after = applied(network, network, inputs), carried
        return losses(self.problem.loss, outputs.astype(self.dtype), batch).sum() / len(inputs), after

    def _loss_and_gradient(
        self, weights: Any, carried: Any, batch: Batch | None, key: Any
    ) -> tuple[tuple[Array, Any], Any]:
        function, parts = jax.value_and_grad(self._loss, has_aux=True), self.problem.sampler.parts
        if parts == 1:
            return function(weights, carried, batch, key)

        def add(sums: Any, part: Batch) -> tuple[Any, None]:
            (loss, after), gradient = function(weights, sums[1], part, key)
            return (sums[0] + loss, after, jax.tree.map(jnp.add, sums[2], gradient)), None

        nothing = jnp.zeros((), self.dtype), carried, jax.tree.map(jnp.zeros_like, weights)
        split = jax.tree.map(lambda values: values.reshape(parts, -1, *values.shape[1:]), batch)
        (loss, after, gradient), _ = jax.lax.scan(add, nothing, split)
        return (loss / parts, after), jax.tree.map(lambda sum_of_parts: sum_of_parts / parts, gradient)

    def _full_gradient(self, weights: Any, carried: Any, key: Any) -> Any:
        average = self._stream_average()
        if average is not None:
            return jax.grad(lambda weights: average.loss(eqx.combine(weights, carried, self.problem.frame)))(weights)
        require(
            self.data is not None or self.problem.sampler.stream is None,
            "a step statistic uses the full gradient, but the task is a stream of samples",
            argument="statistics",
            remedy="use the batch gradient, or a task with samples",
        )
        return jax.grad(lambda weights: self._loss(weights, carried, self.data, key)[0])(weights)

    def _stream_average(self) -> Any:
        """Return the expectation of a stream if it is known in closed form for this loss; otherwise None."""
        stream = self.problem.sampler.stream
        # The closed form is that of the squared loss.
        known = stream is not None and stream.has_expectation and self.problem.loss == Loss()
        return stream.expectation() if known and stream is not None else None

    def _evaluated(self, network: Any, data: Batch | None, step: Any) -> dict[str, Any]:
        problem = self.problem
        if data is None:
            average = problem.average if problem.sampler.stream is None else self._stream_average()
            if average is not None:
                return {"loss": average.loss(network)}
            # Keys of batches fold in one number after the seed, so this key differs from all of them.
            key = jax.random.fold_in(jax.random.fold_in(self.key, step), EVALUATED)
            data = problem.sampler.fresh(key, EVALUATED, self.dtype)
        return evaluated(problem.loss, network, data, self.dtype, right=problem.counts_right)


def _later(clock: Any, rate: Any) -> Any:
    time, lost, _ = clock
    new = time + rate
    rest = jnp.where(time >= rate, (time - new) + rate, (rate - new) + time)
    return new, lost + rest, rate
