"""The neurons of a linear network as bundles that move alike, and the steps of a stiff solver for them."""

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

_NEARLY = 0.5  # overlap of two bundles, from which on one takes digits of the other
_GROWN = 16.0  # e-folds in which a bundle may take so many digits of another, about seven of sixteen


class LinearBundles(StiffFlow):
    """Bundles θ_j = e^{l_j} v_j, of which v_j moves by v_j' = F v_j from a unit direction while l_j rests.

    With v = (a, b), a of the inputs in the eigenbasis of Σxx = Λ and b of the outputs, F = [[0, Rᵀ], [R, 0]] depends
    on the residual R = Σyx − WΛ only, and on W = Σ_j e^{2l_j} b_j a_jᵀ. So with M = (s − F)⁻¹ and
    S = Σ_j e^{2l_j} v_j v_jᵀ, the columns x_j of (s − J)⁻¹ r are

        x_j = M (r_j − δF v_j),    δF = [[0, ΛYᵀ], [YΛ, 0]],

    where the change Y of the learned map obeys, with Q = Σ_j e^{2l_j} r_j v_jᵀ and indices for parts,

        Y + M_ba ΛYᵀ S_ba + M_bb YΛ S_aa + S_ba ΛYᵀ M_ba + S_bb YΛ M_aa = (MQ + QᵀM)_ba.

    These are as many equations as the map has entries, however many neurons there are.

    Attributes:
        cross: Σyx on the range of the inputs, in the eigenbasis of Σxx.
        power: The eigenvalues, Λ.
        target_power: E‖y‖².
        left: Left singular vectors of Σyx.
        right: Right ones.
        rotated: Log-norms when the bundles were last rotated apart.
    """

    cross: Float[Array | np.ndarray, "c d"]
    power: Float[Array | np.ndarray, " d"]
    target_power: Float[Array | np.ndarray, ""]
    left: Float[Array | np.ndarray, "c mode"]
    right: Float[Array | np.ndarray, "d mode"]
    rotated: Float[Array | np.ndarray, " bundle"]

    def start(self, state: Bundles) -> Array:
        """Unit directions."""
        return state[0]

    def velocity(self, moving: Array, state: Bundles) -> Array:
        """F v_j."""
        return self._pull(self._map(moving, moving, state), moving)

    def inverse(self, shift: Array, state: Bundles) -> Callable[[Array], Array]:
        """By way of the change of the learned map."""
        directions, log_norms = state
        outputs, inputs = self.cross.shape
        a, b = slice(None, inputs), slice(inputs, None)
        weighted = (directions * jnp.exp(2 * log_norms)).T
        residual = self.cross - self._map(directions, directions, state) * self.power
        # M by the part of the outputs, of which there are few.
        small = jnp.linalg.inv(shift**2 * jnp.eye(outputs) - residual @ residual.T)
        mixed = small @ residual
        m = jnp.block([[(jnp.eye(inputs) + residual.T @ mixed) / shift, mixed.T], [mixed, shift * small]])
        s = directions @ weighted
        # Of Y ↦ A YΛ B it is A ⊗ ΛB; of Y ↦ A ΛYᵀ B the entries are A_pj Λ_j B_qi.
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
        """The largest change of a direction, or that of the outputs beside the targets."""
        learned = self._map(change, state[0], state) + self._map(state[0], change, state)
        outputs = jnp.sqrt(jnp.sum(learned**2 * self.power) / self.target_power)
        return jnp.maximum(jnp.max(jnp.linalg.norm(change, axis=0)), outputs)

    def moved(self, moving: Array, state: Bundles) -> Bundles:
        """Unit directions again."""
        norms = jnp.linalg.norm(moving, axis=0)
        # What is left of a copy of another bundle has no direction.
        norms = jnp.where(norms > 0, norms, 1.0)
        return moving / norms, state[1] + jnp.log(norms)

    def statistics(self, state: Bundles) -> dict[str, Array]:
        """Loss, descent rate and strengths of the modes."""
        learned = self._map(state[0], state[0], state)
        pull = self._pull(learned, state[0])
        fitted = jnp.sum(learned * (self.cross - learned * self.power / 2))
        return {
            "loss": jnp.maximum(self.target_power / 2 - fitted, 0.0),
            "descent_rate": jnp.sum(jnp.exp(2 * state[1]) * jnp.sum(pull**2, axis=0)),
            "mode_strength": jnp.sum(self.left * (learned @ self.right), axis=0),
        }

    def outgrown(self, state: Bundles) -> Array:
        """Whether a bundle has grown so far that others, which follow it, lose the digits in which they differ."""
        return jnp.max(jnp.abs(state[1] - self.rotated)) > _GROWN

    def renewed(self, state: Any) -> tuple[LinearBundles, Any]:
        """Bundles that are rotated until none is nearly a copy of another, if one has outgrown the others."""
        if np.max(np.abs(np.asarray(state[1]) - np.asarray(self.rotated))) <= _GROWN:
            return self, state
        state = orthogonal_bundles(state, enough=_NEARLY)
        return dataclasses.replace(self, rotated=state[1]), state

    def _map(self, one: Array, other: Array, state: Bundles) -> Array:
        """Σ_j e^{2l_j} b_j a_jᵀ."""
        inputs = len(self.power)
        return (one[inputs:] * jnp.exp(2 * state[1])) @ other[:inputs].T

    def _pull(self, learned: Array, moving: Array) -> Array:
        inputs = len(self.power)
        residual = self.cross - learned * self.power
        return jnp.concatenate([residual.T @ moving[inputs:], residual @ moving[:inputs]])
