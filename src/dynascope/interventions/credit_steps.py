"""The compiled loop that trains an ensemble of networks with feedback weights."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from dynascope.compilation import jit
from dynascope.flows.blocks import equal_parts, members_of
from dynascope.interventions.credit_rules import regularizer
from dynascope.interventions.feedback_network import FeedbackNetwork

__all__ = ["LARGEST_RATIO", "Member", "Schedule", "run_members"]

LARGEST_RATIO = 1e3  # ‖B‖/‖W‖ beyond which a layer counts as diverged
_TOGETHER = 64  # members that are batched; larger batches need more memory and are not faster


class Schedule(NamedTuple):
    """The settings that all members share; they determine the compiled program."""

    batch_size: int
    steps: int
    warm_up: int
    drive: str
    records: int


class Member(NamedTuple):
    """The network, the rule and the numerical settings of one member; or those of all members, with a leading axis.

    The rule for feedback weights is stored as an index into the argument `kinds` of `run_members`.
    """

    network: FeedbackNetwork
    learning_rate: Any
    weight_decay: Any
    feedback_rate: Any
    feedback_noise: Any
    kind: Any
    coefficients: dict[str, Any]


class State(NamedTuple):
    """A network in training, and the step at which each layer (last entry: the loss) diverged; −1 for no divergence."""

    network: FeedbackNetwork
    failed: Any


@functools.partial(jit, static_argnums=(0, 1))
def run_members(
    kinds: tuple[str, ...], schedule: Schedule, members: Member, data: Any, key: Any
) -> tuple[Any, Any, Any]:
    """Train all members; return their networks, their measures at the recorded steps, and the failed steps.

    Args:
        kinds: The values of `CreditRule.feedback` that occur among the members.
        schedule: The settings that all members share.
        members: The members.
        data: Inputs and labels for training, for the test accuracy, and for gradients.
        key: Key of batches and noise.
    """
    count = len(members.kind)
    blocks = members_of(members, equal_parts(count, -(-count // _TOGETHER)))
    found = jax.lax.map(jax.vmap(lambda member: _Run(kinds, schedule, member, data, key).train()), blocks)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:count], found)


class _Run:
    """The training of one member."""

    def __init__(self, kinds: tuple[str, ...], schedule: Schedule, member: Member, data: Any, key: Any):
        self.kinds, self.schedule, self.member, self.key = kinds, schedule, member, key
        kind = member.learning_rate.dtype
        self.data, self.test, self.probed = ((jnp.asarray(x, kind), jnp.asarray(y)) for x, y in data)
        layers = member.network.layers
        self.layers = [k for k, layer in enumerate(layers) if layer.backward is not None]
        self.scales = [jnp.mean(jnp.abs(layers[k].weights)) for k in self.layers]

    def train(self) -> tuple[FeedbackNetwork, Any, Any]:
        """Align the feedback weights, train, and measure the network at equally spaced steps."""
        failed = jnp.full(len(self.layers) + 1, -1)
        network = self.member.network
        copied = {"weights": self.weights_of, "signs": self.signs_of}
        state = State(self.with_backward(network, self.selected(network, network, copied)), failed)
        state, curves = jax.lax.scan(self.segment, state, jnp.arange(self.schedule.records + 1))
        return state.network, curves, state.failed

    def segment(self, state: State, record: Any) -> tuple[State, Any]:
        """Train until the next record. The first record follows the warm-up, whose steps have negative numbers."""
        length = self.schedule.steps // self.schedule.records
        first = jnp.where(record == 0, -self.schedule.warm_up, (record - 1) * length)
        state = jax.lax.fori_loop(first, record * length, self.advance, state)
        return state, self.measured(state.network)

    def advance(self, step: Any, state: State) -> State:
        """Update all weights, or only the feedback weights during the warm-up."""
        network, failed = state
        x, y, noise = self.batch(step + self.schedule.warm_up)
        loss, gradient = jax.value_and_grad(_loss)(network, x, y)
        rate, decay = jnp.where(step < 0, 0, self.member.learning_rate), self.member.weight_decay
        moved = eqx.tree_at(
            lambda each: [part for layer in each.layers for part in (layer.weights, layer.bias)],
            network,
            [
                part
                for old, push in zip(network.layers, gradient.layers, strict=True)
                for part in (old.weights - rate * (push.weights + decay * old.weights), old.bias - rate * push.bias)
            ],
        )
        updates = {
            "weights": self.weights_of,
            "signs": self.signs_of,
            "equal updates": lambda _: self.equally_updated(network, gradient, rate, noise),
            "regularizer": lambda moved: self.aligned(moved, x, noise),
        }
        moved = self.with_backward(moved, self.selected(network, moved, updates))
        bad_loss = jnp.where(jnp.isfinite(loss), 0, jnp.inf)
        fine = jnp.stack([*(_norm_ratio(moved.layers[k]) for k in self.layers), bad_loss]) <= LARGEST_RATIO
        return State(moved, jnp.where(fine | (failed >= 0), failed, jnp.maximum(step + 1, 0)))  # NaN is not fine

    def batch(self, step: Any) -> tuple[Any, Any, Any]:
        """Inputs, labels, and a key for noise."""
        drawn, noise = jax.random.split(jax.random.fold_in(self.key, step))
        rows = jax.random.randint(drawn, (self.schedule.batch_size,), 0, len(self.data[0]))
        return self.data[0][rows], self.data[1][rows], noise

    def selected(self, network: FeedbackNetwork, moved: FeedbackNetwork, updates: Mapping[str, Any]) -> list[Any]:
        """The feedback weights after a step under the rule of the member; unchanged if no update applies."""
        fixed = [network.layers[k].backward for k in self.layers]
        choices = [updates[kind](moved) if kind in updates else fixed for kind in self.kinds]
        return [jax.lax.select_n(self.member.kind, *each) for each in zip(*choices, strict=True)]

    def weights_of(self, moved: FeedbackNetwork) -> list[Any]:
        """The weights themselves, which backpropagation uses as feedback weights."""
        return [moved.layers[k].weights for k in self.layers]

    def signs_of(self, moved: FeedbackNetwork) -> list[Any]:
        """The signs of the weights, with the initial mean absolute weight."""
        pairs = zip(self.layers, self.scales, strict=True)
        return [scale * jnp.sign(moved.layers[k].weights) for k, scale in pairs]

    def equally_updated(self, network: FeedbackNetwork, gradient: FeedbackNetwork, rate: Any, key: Any) -> list[Any]:
        """The feedback weights after the same update and decay as the weights."""
        found = []
        for k in self.layers:
            old, push = network.layers[k].backward, gradient.layers[k].weights
            push = push + self.member.weight_decay * old + self.member.feedback_noise * _normal(key, k, old)
            found.append(old - rate * push)
        return found

    def aligned(self, moved: FeedbackNetwork, x: Any, key: Any) -> list[Any]:
        """The feedback weights after a descent step on their regulariser."""
        drives, noises = jax.random.split(key)
        activities, found = moved.activities(x), []
        for k in self.layers:
            layer = moved.layers[k]
            drive = _normal(drives, k, activities[k]) if self.schedule.drive == "noise" else activities[k]
            cost = functools.partial(regularizer, layer, drive, coefficients=self.member.coefficients)
            push = jax.grad(cost)(layer.backward) + self.member.feedback_noise * _normal(noises, k, layer.backward)
            found.append(layer.backward - self.member.feedback_rate * push)
        return found

    def with_backward(self, network: FeedbackNetwork, backward: list[Any]) -> FeedbackNetwork:
        """Set the feedback weights of the layers that have feedback weights."""
        found = dict(zip(self.layers, backward, strict=True))
        return network.with_backward([found.get(k) for k in range(len(network.layers))])

    def measured(self, network: FeedbackNetwork) -> dict[str, Any]:
        """Loss, accuracies, and the alignment of the feedback weights and of the gradient computed with them."""
        (x, y), (test_x, test_y) = self.data, self.test
        outputs, held = network(x), [network.layers[k] for k in self.layers]
        gradients = (jax.grad(_loss)(each, *self.probed) for each in (network, network.with_exact_feedback()))
        return {
            "loss": jnp.mean(optax.softmax_cross_entropy_with_integer_labels(outputs, y)),
            "accuracy": jnp.mean(jnp.argmax(outputs, axis=1) == y),
            "test_accuracy": jnp.mean(jnp.argmax(network(test_x), axis=1) == test_y),
            "weight_angle": jnp.stack([_angle([each.backward], [each.weights]) for each in held]),
            "norm_ratio": jnp.stack([_norm_ratio(each) for each in held]),
            "gradient_angle": _angle(*([layer.weights for layer in each.layers] for each in gradients)),
        }


def _loss(network: FeedbackNetwork, x: Any, y: Any) -> Any:
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(network(x), y))


def _normal(key: Any, layer: int, like: Any) -> Any:
    return jax.random.normal(jax.random.fold_in(key, layer), like.shape, like.dtype)


def _norm_ratio(layer: Any) -> Any:
    return jnp.linalg.norm(layer.backward.ravel()) / jnp.linalg.norm(layer.weights.ravel())


def _angle(one: list[Any], other: list[Any]) -> Any:
    """Angle, in degrees, between two lists of arrays."""
    product, first, second = (
        sum(jnp.vdot(a, b) for a, b in zip(*pair, strict=True)) for pair in ((one, other), (one, one), (other, other))
    )
    return jnp.degrees(jnp.arccos(jnp.clip(product / jnp.sqrt(first * second), -1, 1)))
