"""Composition of two elements of a finite group: the loss of quadratic networks in closed form."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.groups.encodings import valid_encoding
from dynascope.groups.representations import real_irreducible_representations
from dynascope.groups.tables import Group
from dynascope.protocols import Network
from dynascope.tasks.algebra.quadratic_pairs import quadratic_weights

__all__ = ["GroupComposition"]

_ROUNDING = 1e-9  # a Fourier coefficient, or a singular value, below this fraction of the largest counts as zero


class GroupComposition(eqx.Module):
    """Composition of two group elements, with the exact loss of quadratic networks over all n² pairs.

    The element g is encoded as x_g[h] = x[g⁻¹ h], where x has mean zero. The responses a_i(g) = u_i·x_g and
    b_i(h) = v_i·x_h therefore have mean zero. With c_i(s) = w_i·x_s, the output f = Σ_i w_i (a_i + b_i)² satisfies

        E⟨f, y⟩ = 2 Σ_i E[a_i(g) b_i(h) c_i(g·h)] = (2/n³) Σ_i Σ_ρ d_ρ Re⟨â_i(ρ) b̂_i(ρ), ĉ_i(ρ)⟩,
        E‖f‖² = E‖A(g)‖² + E‖B(h)‖² + 2⟨E A, E B⟩ + 4 Σ_ij (w_i·w_j) E[a_i a_j] E[b_i b_j],

    where A(g) = Σ_i w_i a_i(g)² and B(h) = Σ_i w_i b_i(h)² depend on one element each. For H neurons, the closed form
    takes about H n (3 H + 4 n) multiplications; averaging over all samples takes 3 H n³ and gives the same value up to
    rounding. For a cyclic group, this task is equivalent to `tasks.ModularAddition`.

    Attributes:
        analysis: Map from weights (n,) to coordinates of their responses, in which inner products are averages over the
            group. Shape (n, m) if the shifts of the encoding span m dimensions.
        synthesis: Map from these coordinates to the responses a(g) for all g, shape (m, n).
        transforms: For each irrep ρ in the encoding, the map from weights to the Fourier coefficients of their
            responses in ρ, shape (n, d, d).
        multiplicities: For each irrep, d, or 2d if ρ represents a conjugate pair.
        target_power: ‖x‖² = E‖y‖².
        name: Short name.
        description: Sentences about the data.

    Args:
        group: The group of n elements.
        encoding: x, shape (n,), of mean zero.

    Raises:
        InputError: If the encoding is not a finite, non-zero vector of length n with mean zero.

    References:
        Sequential Group Composition, arXiv:2602.03655, for the task. The closed form of the loss is derived here.

    Example:
        >>> import jax
        >>> from dynascope.networks import TwoLayer
        >>> from dynascope.tasks.algebra.group_composition import group_composition
        >>> from dynascope.groups import dihedral
        >>> group, x = dihedral(3), np.array([5.0, -3.0, -1.0, 2.0, -2.0, -1.0])
        >>> network = TwoLayer(12, 4, 6, activation="quadratic")
        >>> tasks = GroupComposition(group, x), group_composition(group, x)
        >>> with jax.enable_x64(True):
        ...     losses = jax.jit(lambda network: [each.loss(network) for each in tasks])(network)
        >>> print(*(round(each.item(), 5) for each in losses))
        1551.19175 1551.19175
    """

    analysis: Float[Array | np.ndarray, "n m"]
    synthesis: Float[Array | np.ndarray, "m n"]
    transforms: tuple[Any, ...]
    multiplicities: tuple[int, ...] = eqx.field(static=True)
    target_power: Float[Array | np.ndarray, ""]
    name: str = eqx.field(static=True)
    description: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, group: Group, encoding: ArrayLike):
        x, n = valid_encoding(group, np.asarray(encoding)), group.order
        encoded = x[group.table[group.inverse]]
        left, singular, right = np.linalg.svd(encoded.T)
        rank = int(np.sum(singular > _ROUNDING * singular[0]))
        self.analysis = left[:, :rank] * singular[:rank] / n**0.5
        self.synthesis = right[:rank] * n**0.5
        transforms = [
            (irrep, np.einsum("gh,gpq->hpq", encoded, irrep.matrices))
            for irrep in real_irreducible_representations(group)
        ]
        largest = max(np.abs(each).max() for _, each in transforms)
        kept = [(irrep, each) for irrep, each in transforms if np.abs(each).max() > _ROUNDING * largest]
        self.transforms = tuple(each.real if irrep.kind == "real" else each for irrep, each in kept)
        self.multiplicities = tuple(irrep.members * irrep.dimension for irrep, _ in kept)
        self.target_power = np.asarray(x @ x)
        self.name = f"composition of 2 elements of {group.name}"
        self.description = (
            f"All {n**2} pairs of elements of the group {group.name} ({n} elements), averaged in closed form.",
            "The element g is encoded as x_g[h] = x[g⁻¹ h].",
        )

    def attributes(self) -> dict[str, Any]:
        """Attributes that describe the task in records."""
        n = len(self.analysis)
        return {
            "task": self.name,
            "description": list(self.description),
            "samples": n * n,
            "input_dimension": 2 * n,
            "output_dimension": n,
        }

    def loss(self, network: Network) -> Float[Array, ""]:
        """Compute L = ½ E‖f(x) − y‖² for a two-layer quadratic network with 2n inputs and n outputs.

        Raises:
            InputError: If the network does not have this architecture.
        """
        n = len(self.analysis)
        u, v, w = quadratic_weights(network, n)
        learned = 0.0
        for transform, multiplicity in zip(self.transforms, self.multiplicities, strict=True):
            a, b, c = (jnp.einsum("ih,hpq->ipq", each, transform) for each in (u, v, w))
            learned += 2 / n**3 * multiplicity * jnp.sum((a @ b) * c.conj()).real

        left, right = u @ self.analysis, v @ self.analysis
        of_first, of_second = (((each @ self.synthesis) ** 2).T @ w for each in (left, right))
        alone = (jnp.sum(of_first**2) + jnp.sum(of_second**2)) / n
        alone += 2 * jnp.mean(of_first, axis=0) @ jnp.mean(of_second, axis=0)
        together = 4 * jnp.sum((w @ w.T) * (left @ left.T) * (right @ right.T))
        return jnp.asarray(self.target_power + alone + together) / 2 - learned
