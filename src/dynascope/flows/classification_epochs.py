"""One epoch of training a classifier, and its evaluation, each a compiled program."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Float, Int

from dynascope.networks.batch_normalisation import trained_weights
from dynascope.protocols import Network

__all__ = ["LOSSES", "ClassificationLoss", "Epoch", "at_rest", "augmented", "evaluate", "optimizer", "train_epoch"]

ClassificationLoss = Literal["cross_entropy", "squared"]
LOSSES: dict[ClassificationLoss, str] = {
    "cross_entropy": "loss = −E log softmax(f(x))[y] (mean over samples, natural logarithm)",
    "squared": "loss = ½ E‖f(x) − e_y‖² (mean over samples, sum over classes)",
}
_EVALUATED = 500  # images at a time when nothing is trained


@dataclasses.dataclass(frozen=True)
class Epoch:
    """What the program of an epoch is compiled for.

    Attributes:
        loss: "cross_entropy" or "squared".
        batch_size: Images in a step.
        crop_padding: Zeros around an image before it is cropped at a random place.
        flip: Whether images are mirrored at random.
    """

    loss: ClassificationLoss
    batch_size: int
    crop_padding: int
    flip: bool


def optimizer(rate: Any, momentum: Any, weight_decay: Any) -> optax.GradientTransformation:
    """The steps v ← m v + ∇L(θ) + λ θ and θ ← θ − η v, given η, m and λ."""
    return optax.chain(optax.add_decayed_weights(weight_decay), optax.sgd(rate, momentum=momentum))


@eqx.filter_jit
def at_rest(network: Network, constants: tuple[Any, Any]) -> Any:
    """The optimiser's state before the first step."""
    return optimizer(0.0, *constants).init(trained_weights(network))


@eqx.filter_jit
def train_epoch(
    network: Network,
    state: Any,
    data: tuple[Array, Array],
    rate: Any,
    constants: tuple[Any, Any],
    place: tuple[Any, Any],
    settings: Epoch,
) -> tuple[Any, Any, Array]:
    """The network and the optimiser's state after an epoch, which is that of (seed, epoch), and the mean loss."""
    images, labels = data
    key = jax.random.fold_in(jax.random.key(place[0]), place[1])
    size = settings.batch_size
    order_key, augment_key = jax.random.split(key)
    count = len(images) // size
    batches = jax.random.permutation(order_key, len(images))[: count * size].reshape(count, size)
    descent = optimizer(rate, *constants)
    arrays, frame = eqx.partition(network, eqx.is_array)

    def step(carry: tuple[Any, Any], batch: tuple[Array, Array]) -> tuple[tuple[Any, Any], Array]:
        network, state = eqx.combine(carry[0], frame), carry[1]
        rows, own = batch
        x, y = augmented(images[rows], own, settings), labels[rows]

        def loss(weights: Any) -> tuple[Array, Any]:
            whole = eqx.combine(weights, network)
            outputs, new = whole.train_step_outputs(x) if hasattr(whole, "train_step_outputs") else (whole(x), whole)
            return _losses(outputs, y, settings.loss).mean(), eqx.filter(new, eqx.is_array)

        weights = trained_weights(network)
        (value, new), slope = jax.value_and_grad(loss, has_aux=True)(weights)
        updates, state = descent.update(slope, state, weights)
        return (eqx.combine(optax.apply_updates(weights, updates), new), state), value

    (arrays, state), values = jax.lax.scan(step, (arrays, state), (batches, jax.random.split(augment_key, count)))
    return eqx.combine(arrays, frame), state, values.mean()


@eqx.filter_jit
def evaluate(network: Network, data: tuple[Array, Array], loss: ClassificationLoss) -> tuple[Array, Array]:
    """Mean loss and accuracy."""
    images, labels = data
    n, size = len(images), min(_EVALUATED, len(images))
    blocks = -(-n // size)

    def add(sums: Array, first: Array) -> tuple[Array, None]:
        rows = first + jnp.arange(size)
        # The last block is filled up with images that do not count.
        kept = jnp.minimum(rows, n - 1)
        outputs = network(images[kept])
        right = jnp.argmax(outputs, axis=1) == labels[kept]
        values = jnp.stack([_losses(outputs, labels[kept], loss), right.astype(outputs.dtype)])
        return sums + jnp.where(rows < n, values, 0).sum(axis=1), None

    sums, _ = jax.lax.scan(add, jnp.zeros(2), size * jnp.arange(blocks))
    return sums[0] / n, sums[1] / n


def _losses(outputs: Float[Array, "n c"], labels: Int[Array, " n"], loss: ClassificationLoss) -> Float[Array, " n"]:
    if loss == "cross_entropy":
        return optax.softmax_cross_entropy_with_integer_labels(outputs, labels)
    return jnp.sum((outputs - jax.nn.one_hot(labels, outputs.shape[1], dtype=outputs.dtype)) ** 2, axis=1) / 2


def augmented(images: Array, key: Array, settings: Epoch) -> Array:
    """Images cropped at random places of a frame of zeros, and mirrored or not."""
    place, side = jax.random.split(key)
    around = settings.crop_padding
    if around:
        corners = jax.random.randint(place, (len(images), 2), 0, 2 * around + 1)
        framed = jnp.pad(images, ((0, 0), (around, around), (around, around), (0, 0)))
        images = jax.vmap(
            lambda image, corner: jax.lax.dynamic_slice(image, (corner[0], corner[1], 0), images.shape[1:])
        )(framed, corners)
    if settings.flip:
        mirrored = jax.random.bernoulli(side, shape=(len(images), 1, 1, 1))
        images = jnp.where(mirrored, images[:, :, ::-1], images)
    return images
