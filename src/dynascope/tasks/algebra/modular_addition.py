"""Addition of encoded numbers modulo p, as samples and as an expectation in closed form."""

from __future__ import annotations

from typing import Annotated, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from annotated_types import Ge
from jax import Array
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.protocols import Network
from dynascope.tasks.algebra.quadratic_pairs import quadratic_weights
from dynascope.tasks.task import Task
from dynascope.validation import require, require_array, require_kind

__all__ = ["ModularAddition", "modular_addition"]

_ROUNDING = 1e-9  # means and Fourier coefficients below this fraction of the largest count as zero
_MOST_NUMBERS = 256  # the samples hold 3 p³ numbers, 400 MB at this p


def modular_addition(encoding: int | ArrayLike) -> Task:
    """All p² pairs of numbers modulo p with their sums: inputs (x_a, x_b), target x_(a+b).

    The number a is encoded as x_a[j] = x[(j − a) mod p].

    Args:
        encoding: Encoding vector x, shape (p,), with any mean; or p, for the one-hot encoding.

    Returns:
        Task with inputs (p², 2p) and targets (p², p); the pair (a, b) is row a·p + b.

    Raises:
        InputError: If the modulus is below 3 or above 256 (`ModularAddition` has no upper limit), or if the encoding is
            not a finite vector.

    References:
        Alternating Gradient Flows, arXiv:2506.06489.

    Example:
        >>> task = modular_addition(5)
        >>> task.inputs[1 * 5 + 2].tolist(), int(task.targets[1 * 5 + 2].argmax())
        ([0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0], 3)
    """
    if np.ndim(encoding) == 0:
        require_kind(Annotated[int, Ge(3)], p=encoding)
        x = np.eye(int(np.asarray(encoding)))[0]
        kind = "one-hot vectors"
    else:
        x = require_array("encoding", encoding, (None,))
        kind = "the cyclic shifts of a vector"
    p = len(x)
    require_kind(Annotated[int, Ge(3)], p=p)
    require(
        p <= _MOST_NUMBERS,
        f"p is {p}, which requires {p * p} samples of {3 * p} numbers",
        argument="encoding",
        value=p,
        remedy="use ModularAddition, which stores no samples",
    )
    numbers = np.arange(p)
    shifted = x[(numbers - numbers[:, None]) % p]
    first, second = np.divmod(np.arange(p * p), p)
    return Task(
        np.concatenate([shifted[first], shifted[second]], axis=1),
        shifted[(first + second) % p],
        name=f"modular addition, p = {p}",
        description=(f"All {p * p} pairs of numbers to add modulo {p}.", f"Numbers are encoded as {kind}."),
    )


class ModularAddition(eqx.Module):
    """Addition modulo p, with the exact loss of two-layer quadratic networks over all p² pairs.

    The responses a_i(g) = u_i·x_g and b_i(h) = v_i·x_h have mean zero because x has mean zero. The output
    f = Σ_i w_i (a_i + b_i)² satisfies

        E⟨f, y⟩ = 2 Σ_i E[a_i(g) b_i(h) w_i·x_(g+h)],
        E‖f‖² = Σ_ij (w_i·w_j) {A_ij + 4 E[a_i a_j] E[b_i b_j]},
        A_ij = E[a_i² a_j²] + E[b_i² b_j²] + E[a_i²] E[b_j²] + E[b_i²] E[a_j²],

    where each average involves only one of the two numbers. The averages are computed in real Fourier coordinates,
    restricted to the frequencies of x. For H neurons, the closed form takes 3 H² p multiplications; averaging over all
    samples takes 3 H p³ and gives the same value up to rounding.

    Attributes:
        analysis: Map from weights (p,) to the Fourier coefficients of their responses, first real then imaginary parts,
            shape (p, 2K) for K frequencies.
        synthesis: Map from these coefficients to the responses a(g) for all g, shape (2K, p).
        multiplicity: 2 for each frequency, except 1 for p/2, which is its own conjugate; shape (K,).
        target_power: ‖x‖² = E‖y‖².
        name: Short name.
        description: Sentences about the data.

    Args:
        encoding: Encoding vector x, shape (p,), with mean zero.

    Raises:
        InputError: If p is below 3, or if the encoding is not a finite, non-zero vector with mean zero.

    References:
        Alternating Gradient Flows, arXiv:2506.06489, for the task. The closed form of the loss is derived here.

    Example:
        >>> import jax
        >>> from dynascope.networks import TwoLayer
        >>> from dynascope.groups import encoding_from_frequencies
        >>> x = encoding_from_frequencies(7, {1: 1.0, 2: 0.5})
        >>> network = TwoLayer(14, 4, 7, activation="quadratic")
        >>> with jax.enable_x64(True):
        ...     loss = jax.jit(lambda network: [each(x).loss(network) for each in (ModularAddition, modular_addition)])
        ...     print(*(round(each.item(), 6) for each in loss(network)))
        57.095863 57.095863
    """

    analysis: Float[Array | np.ndarray, "p coordinates"]
    synthesis: Float[Array | np.ndarray, "coordinates p"]
    multiplicity: Float[Array | np.ndarray, " frequencies"]
    target_power: Float[Array | np.ndarray, ""]
    name: str = eqx.field(static=True)
    description: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, encoding: ArrayLike):
        x = require_array("encoding", encoding, (None,))
        p = len(x)
        require_kind(Annotated[int, Ge(3)], p=p)
        require(
            np.any(x != 0), "the encoding is zero", argument="encoding", value=0.0, remedy="give a non-zero encoding"
        )
        require(
            abs(x.sum()) <= _ROUNDING * np.abs(x).sum(),
            f"the encoding has mean {x.mean():.6g}",
            argument="encoding",
            value=float(x.mean()),
            remedy="subtract the mean",
        )
        spectrum = np.fft.rfft(x)
        kept = np.flatnonzero(np.abs(spectrum) > _ROUNDING * np.abs(spectrum).max())
        kept = kept[kept > 0]
        waves = np.exp(-2j * np.pi / p * np.outer(np.arange(p), kept))
        responses = waves * spectrum[kept].conj()
        self.multiplicity = np.where(2 * kept == p, 1.0, 2.0)
        inverse = (waves * self.multiplicity / p).T
        self.analysis = np.concatenate([responses.real, responses.imag], axis=1)
        self.synthesis = np.concatenate([inverse.real, inverse.imag])
        self.target_power = np.asarray(x @ x)
        self.name = f"modular addition, p = {p}"
        self.description = (
            f"All {p * p} pairs of numbers to add modulo {p}, averaged in closed form.",
            "Numbers are encoded as the cyclic shifts of a vector.",
        )

    @property
    def encoding(self) -> Float[np.ndarray, " p"]:
        """The encoding vector x, shape (p,)."""
        # The response of a unit weight on the first entry to the number a is x_a[0] = x[−a].
        return np.roll(np.asarray(self.analysis[0] @ self.synthesis)[::-1], 1)

    def attributes(self) -> dict[str, Any]:
        """Attributes that describe the task in records."""
        p = len(self.analysis)
        return {
            "task": self.name,
            "description": list(self.description),
            "samples": p * p,
            "input_dimension": 2 * p,
            "output_dimension": p,
        }

    def loss(self, network: Network) -> Float[Array, ""]:
        """Compute L = ½ E‖f(x) − y‖² for a two-layer quadratic network with 2p inputs and p outputs.

        Raises:
            InputError: If the network does not have this architecture.
        """
        p = len(self.analysis)
        u, v, w = quadratic_weights(network, p)
        analysis, synthesis, multiplicity, target_power = (
            jnp.asarray(part, w.dtype) for part in (self.analysis, self.synthesis, self.multiplicity, self.target_power)
        )
        left, right, out = u @ analysis, v @ analysis, w @ analysis
        of_product, of_target = _product(left, right), jnp.split(out, 2, axis=-1)
        overlaps = sum(jnp.sum(a * b, axis=0) for a, b in zip(of_product, of_target, strict=True))
        learned = 2 / p**3 * multiplicity @ overlaps

        squares = [(coefficients @ synthesis) ** 2 for coefficients in (left, right)]
        means = [jnp.mean(square, axis=1, keepdims=True) for square in squares]
        varying = [(square - mean) / p**0.5 for square, mean in zip(squares, means, strict=True)]
        moments = jnp.concatenate([*varying, means[0] + means[1]], axis=1)
        powers = jnp.tile(multiplicity, 2) / p**2
        products = ((left * powers) @ left.T) * ((right * powers) @ right.T)
        power = jnp.sum((w @ w.T) * (moments @ moments.T + 4 * products))
        return (target_power + power) / 2 - learned


def _product(one: Any, other: Any) -> tuple[Any, Any]:
    """Real and imaginary parts of products of complex coefficients, given as real parts followed by imaginary parts."""
    half = one.shape[-1] // 2
    (a, b), (c, d) = ((z[..., :half], z[..., half:]) for z in (one, other))
    return a * c - b * d, a * d + b * c
