"""Multi-index models: the exact loss for targets that depend on a few directions of a Gaussian input."""

from __future__ import annotations

import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float
from numpy.polynomial import hermite_e
from numpy.typing import ArrayLike

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.protocols import Network, OneHiddenLayer
from dynascope.validation import require, require_array
from dynascope.validation.kinds import in_words

__all__ = ["MultiIndex"]

_ROUNDING = 1e-10  # deviation from orthonormality that counts as rounding


class MultiIndex(eqx.Module):
    """A multi-index model with the exact loss over x ~ N(0, I) of two-layer networks with a power activation.

    The target is y = Σ_r g_r(⟨w_r, x⟩). The derivation expands the activation in Hermite polynomials,

        (w·x)^k = Σ_j h_j ‖w‖^(k−j) [‖w‖^j He_j(w·x/‖w‖)],   h_j = k!/(2^q q! j!),   q = (k − j)/2 an integer,

    and uses E[‖w‖^j He_j(ŵ·x) ‖v‖^j He_j(v̂·x)] = j! (w·v)^j. The loss of f = Σ_i a_i (w_i·x)^k is, in any dimension,

        L = ½ E y² + Σ_j j! Σ_i c_ij [½ Σ_n c_nj ⟨w_i, w_n⟩^j − Σ_r g_rj ⟨w_i, w_r⟩^j],   c_ij = a_i h_j ‖w_i‖^(k−j).

    Attributes:
        links: Hermite coefficients of the link functions, shape (R, p + 1).
        directions: w_r, orthonormal rows, shape (R, d).

    Args:
        links: Hermite coefficients of the link functions, shape (R, p + 1): g_r(z) = Σ_j links[r, j] He_j(z), with the
            probabilists' polynomials He₀ = 1, He₁ = z, He₂ = z² − 1, …. The network cannot learn orders above k, nor
            orders whose parity differs from that of k.
        directions: w_r, orthonormal rows, shape (R, d). A single row defines a single-index model.

    Raises:
        InputError: If the directions are not orthonormal, or if the numbers of links and directions differ.

    Example:
        >>> from dynascope.networks import TwoLayer
        >>> task = MultiIndex([[1.0, 0.0, 1.0]], [[0.0, 1.0]])
        >>> network = TwoLayer(2, 1, 1, activation="quadratic")
        >>> with jax.enable_x64(True):
        ...     print(*(float(task.loss(network.with_neurons(np.array([[0.0, 1.0, a]])))) for a in (0.0, 1.0)))
        1.5 0.0
    """

    links: Float[Array | np.ndarray, "index order"]
    directions: Float[Array | np.ndarray, "index d"]

    def __init__(self, links: ArrayLike, directions: ArrayLike):
        self.links, self.directions = _checked(links, directions)

    @property
    def name(self) -> str:
        """Short name, used in file names and titles."""
        return "multi-index model"

    @property
    def description(self) -> tuple[str, ...]:
        """Sentences about the target and the distribution."""
        return (_about(self.links, self.directions), "The loss is the exact expectation over standard Gaussian inputs.")

    def loss(self, network: Network) -> Float[Array, ""]:
        """Compute L = ½ E(f − y)² for a `TwoLayer` network with one output and an activation proportional to z^k.

        Raises:
            InputError: If the network has a different architecture or number of inputs.
        """
        degree, factor, first, second = _power(network)
        inputs, coordinates = first.shape[0], self.directions.shape[1]
        require(
            inputs == coordinates,
            f"the input dimension of the network is {inputs}, but the directions have length {coordinates}",
            argument="network",
            value=inputs,
            remedy="give directions whose length is the input dimension",
        )
        return _loss(self.links, self.directions, first, factor * second[:, 0], degree)

    def strengths(self, network: Network) -> Float[Array, " index"]:
        """Σ_i a_i ⟨w_i, w_r⟩^k for each direction w_r.

        If the network has learned a target Σ_r s_r ⟨w_r, x⟩^k, the result is s_r.
        """
        degree, _, first, second = _power(network)
        return ((self.directions @ first) ** degree @ second)[:, 0]

    def attributes(self) -> dict[str, Any]:
        """Attributes that describe the task in records."""
        return {
            "task": self.name,
            "description": list(self.description),
            "input_dimension": self.directions.shape[1],
            "output_dimension": 1,
            "image_shape": None,
        }


@functools.partial(jit, static_argnames="degree")
def _loss(links: Array, directions: Array, first: Array, second: Array, degree: int) -> Array:
    """Compute L for the activation z^degree."""
    products, overlaps, squares = first.T @ first, first.T @ directions.T, jnp.sum(first**2, axis=0)
    loss = jnp.sum(links[:, 0]) ** 2 / 2
    for order in range(1, links.shape[1]):
        loss += math.factorial(order) / 2 * jnp.sum(links[:, order] ** 2)
    for order, coefficient in enumerate(hermite_e.poly2herme([0.0] * degree + [1.0])):
        if coefficient:
            scaled = coefficient * squares ** ((degree - order) // 2) * second
            slope = products**order @ scaled / 2
            if order < links.shape[1]:
                slope -= overlaps**order @ links[:, order]
            loss += math.factorial(order) * (scaled @ slope)
    # The loss is non-negative. Clipping removes negative rounding errors without changing the derivatives.
    return loss + jax.lax.stop_gradient(jnp.maximum(loss, 0) - loss)


def _power(network: Network) -> tuple[int, float, Any, Any]:
    """Return k and p of the activation p z^k, and the weights W₁ and W₂."""
    activation = network.activation if isinstance(network, OneHiddenLayer) else None
    if activation is None or activation.negative != (-1) ** activation.degree * activation.positive:
        with_activation = "" if activation is None else f" with the activation {activation.name}"
        raise InputError(
            f"the network is {in_words(type(network))}{with_activation}",
            argument="network",
            value=getattr(activation, "name", type(network).__name__),
            remedy="use a TwoLayer network with the activation linear, quadratic or power-K",
        )
    assert isinstance(network, OneHiddenLayer)
    outputs = network.second.shape[1]
    require(
        outputs == 1,
        f"the network has {outputs} outputs",
        argument="network",
        value=outputs,
        remedy="use a network with one output",
    )
    return activation.degree, activation.positive, network.first, network.second


def _about(links: Any, directions: Any) -> str:
    count, dimension = directions.shape
    return (
        f"The target depends on {count} of {dimension} directions, through polynomials of degree at "
        f"most {links.shape[1] - 1}."
    )


def _checked(links: ArrayLike, directions: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    directions = require_array("directions", directions, (None, None))
    require(directions.size > 0, "directions is empty", argument="directions", remedy="give at least one direction")
    links = require_array("links", links, (len(directions), None))
    require(
        links.size > 0,
        "the links have no coefficients",
        argument="links",
        remedy="give at least one coefficient per link",
    )
    deviation = float(np.abs(directions @ directions.T - np.eye(len(directions))).max())
    require(
        deviation <= _ROUNDING,
        f"the directions deviate from orthonormality by {deviation:.2g}",
        argument="directions",
        value=deviation,
        remedy="orthonormalise them first, for instance with numpy.linalg.qr",
    )
    return links, directions
