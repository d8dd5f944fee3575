"""Gradient flow of linear networks in orthogonal bundles of neurons, with a fast implicit step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.flows.exact.orthogonal_bundles import Bundles, orthogonal_bundles
from dynascope.flows.solvers.adaptive import StiffFlow
from dynascope.flows.solvers.rosenbrock import solution

__all__ = ["LinearBundles"]

_NEARLY = 0.5  # largest overlap of two bundles before the smaller one loses digits
_GROWN = 16.0  # e-folds of growth after which a bundle can lose about seven of sixteen digits


class LinearBundles(StiffFlow):
    """Gradient flow of bundles of neurons θ_j = e^{l_j} v_j of a linear network.

    Each step starts at unit directions v_j and moves them according to v_j' = F v_j, while l_j is constant. Let v = (a,
    b), with the input weights a in the eigenbasis of Σxx = Λ and the output weights b. Then F = [[0, Rᵀ], [R, 0]]
    depends only on the residual R = Σyx − WΛ of the learned map W = Σ_j e^{2l_j} b_j a_jᵀ. With M = (s − F)⁻¹ and
    S = Σ_j e^{2l_j} v_j v_jᵀ, the columns x_j of (s − J)⁻¹ r are

        x_j = M (r_j − δF v_j),    δF = [[0, ΛYᵀ], [YΛ, 0]].

    Let Q = Σ_j e^{2l_j} r_j v_jᵀ, and let the subscripts a and b denote blocks. The change Y in the learned map is the
    solution of

        Y + M_ba ΛYᵀ S_ba + M_bb YΛ S_aa + S_ba ΛYᵀ M_ba + S_bb YΛ M_aa = (MQ + QᵀM)_ba.

    The number of equations equals the number of entries of the map and does not depend on the number of neurons.

    Attributes:
        cross: Σyx on the range of the inputs, in the eigenbasis of Σxx.
        power: The eigenvalues Λ of Σxx.
        target_power: E‖y‖².
        left: Left singular vectors of Σyx.
        right: Right singular vectors of Σyx.
        rotated: Log-norms of the bundles at the last orthogonalisation.
    """

    cross: Float[Array | np.ndarray, "c d"]
    power: Float[Array | np.ndarray, " d"]
    target_power: Float[Array | np.ndarray, ""]
    left: Float[Array | np.ndarray, "c mode"]
    right: Float[Array | np.ndarray, "d mode"]
    rotated: Float[Array | np.ndarray, " bundle"]

    def start(self, state: Bundles) -> Array:
        """Return the unit directions."""
        return state[0]

    def velocity(self, moving: Array, state: Bundles) -> Array:
        """Compute F v_j."""
        return self._pull(self._map(moving, moving, state), moving)

    def inverse(self, shift: Array, state: Bundles) -> Callable[[Array], Array]:
        """Factorise s − J by means of the equation for the change in the learned map."""
        directions, log_norms = state
        outputs, inputs = self.cross.shape
        a, b = slice(None, inputs), slice(inputs, None)
        weighted = (directions * jnp.exp(2 * log_norms)).T
        residual = self.cross - self._map(directions, directions, state) * self.power
        # M from its output block, which is small.
        small = jnp.linalg.inv(shift**2 * jnp.eye(outputs) - residual @ residual.T)
        mixed = small @ residual
        m = jnp.block([[(jnp.eye(inputs) + residual.T @ mixed) / shift, mixed.T], [mixed, shift * small]])
        s = directions @ weighted
        # The matrix of Y ↦ A YΛ B is A ⊗ ΛB; the matrix of Y ↦ A ΛYᵀ B has the entries A_pj Λ_j B_qi.
        kept = jnp.kron(m[b, b], s[a, a] * self.power) + jnp.kron(s[b, b], m[a, a] * self.power)
        turned = jnp.einsum("pj,qi->piqj", m[b, a] * self.power, s[b, a])
        turned += jnp.einsum("pj,qi->piqj", s[b, a] * self.power, m[b, a])
        entries = inputs * outputs
        changed = solution(jnp.eye(entries) + kept + turned.reshape(entries, entries))

        def solve(right: Array) -> Array:
            q = right @ weighted
            known = m[b] @ q[:, a] + (m[a] @ q[:, b]).T
            change = changed(known.ravel()).reshape(outputs, inputs) * self.power
            fed_back = jnp.concatenate([change.T @ directions[b], change @ directions[a]])
            return m @ (right - fed_back)

        return solve

    def size(self, change: Array, state: Bundles) -> Array:
        """Return the larger of the maximum change in a direction and the relative change in the outputs."""
        learned = self._map(change, state[0], state) + self._map(state[0], change, state)
        outputs = jnp.sqrt(jnp.sum(learned**2 * self.power) / self.target_power)
        return jnp.maximum(jnp.max(jnp.linalg.norm(change, axis=0)), outputs)

    def moved(self, moving: Array, state: Bundles) -> Bundles:
        """Normalise the directions, and add the logarithms of their norms to the log-norms."""
        norms = jnp.linalg.norm(moving, axis=0)
        # The remainder of an exact copy of another bundle is zero.
        norms = jnp.where(norms > 0, norms, 1.0)
        return moving / norms, state[1] + jnp.log(norms)

    def statistics(self, state: Bundles) -> dict[str, Array]:
        """Compute the loss, the descent rate and the mode strengths."""
        learned = self._map(state[0], state[0], state)
        pull = self._pull(learned, state[0])
        fitted = jnp.sum(learned * (self.cross - learned * self.power / 2))
        return {
            "loss": jnp.maximum(self.target_power / 2 - fitted, 0.0),
            "descent_rate": jnp.sum(jnp.exp(2 * state[1]) * jnp.sum(pull**2, axis=0)),
            "mode_strength": jnp.sum(self.left * (learned @ self.right), axis=0),
        }

    def needs_refresh(self, state: Bundles) -> Array:
        """Whether a bundle has grown so much that other bundles, which align with it, lose precision."""
        return jnp.max(jnp.abs(state[1] - self.rotated)) > _GROWN

    def refreshed(self, state: Any) -> tuple[LinearBundles, Any]:
        """Orthogonalise the bundles if one of them has grown by many e-folds since the last orthogonalisation."""
        if np.max(np.abs(np.asarray(state[1]) - np.asarray(self.rotated))) <= _GROWN:
            return self, state
        state = orthogonal_bundles(state, enough=_NEARLY)
        return dataclasses.replace(self, rotated=state[1]), state

    def _map(self, one: Array, other: Array, state: Bundles) -> Array:
        """Compute Σ_j e^{2l_j} b_j a_jᵀ."""
        inputs = len(self.power)
        return (one[inputs:] * jnp.exp(2 * state[1])) @ other[:inputs].T

    def _pull(self, learned: Array, moving: Array) -> Array:
        inputs = len(self.power)
        residual = self.cross - learned * self.power
        return jnp.concatenate([residual.T @ moving[inputs:], residual @ moving[:inputs]])
