"""Skills of a multitask parity: the frequency of each skill, and its strength in a given function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.tasks.parity.draws import ManySkills
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

__all__ = ["SkillStrength", "measure_skills", "skill_frequencies"]


class SkillStrength(NamedTuple):
    """Strength and loss of each skill in a function.

    Attributes:
        strength: R_k = E[g_k f | skill k], shape (n_s,); equals S when the skill is learned.
        standard_error: Standard error √(Var(g_k f)/M) of the strength for M samples per skill; zero if the strength is
            exact.
        skill_loss: L_k = ½ E[(f − y)² | skill k], shape (n_s,).
        loss: Σ_k P(k) L_k.
    """

    strength: Float[Array, " skill"]
    standard_error: Float[Array, " skill"]
    skill_loss: Float[Array, " skill"]
    loss: Float[Array, ""]


@checked
def skill_frequencies(skills: PositiveInt, exponent: PositiveFloat) -> Float[np.ndarray, " skill"]:
    """Zipf-distributed skill frequencies.

        P(k) = k^−(α+1) / Σ_j j^−(α+1),   k = 1, …, n_s

    Args:
        skills: Number of skills n_s.
        exponent: α > 0.

    Raises:
        InputError: If n_s is not a positive integer, or if α is not positive.

    Example:
        >>> print(skill_frequencies(3, 0.6).round(4))
        [0.6656 0.2196 0.1148]
    """
    powers = np.arange(1, skills + 1, dtype=np.float64) ** -(exponent + 1)
    # Summing from the smallest term preserves the digits of many rare skills.
    return powers / powers[::-1].sum()


def measure_skills(
    parity: ManySkills, function: Callable[[Any], Any], *, key: Any = None, samples: int = 20_000
) -> SkillStrength:
    """Implement `SparseParity.skill_strength`, one skill at a time.

    Raises:
        InputError: As for `SparseParity.skill_strength`.
    """
    scale = parity.target_scale
    if key is None:
        bits = jnp.asarray(parity.all_bits(), float)

    def measure(skill: Any) -> tuple[Array, Array, Array]:
        if key is None:
            hot = jax.nn.one_hot(skill, parity.skills, dtype=float)
            inputs = jnp.concatenate([jnp.broadcast_to(hot, (len(bits), parity.skills)), bits], axis=1)
            odd = bits[:, jnp.asarray(parity.relevant)[skill]].sum(axis=1) % 2
            products = (1 - 2 * odd) * _one_output(function(inputs), len(inputs))
            error = jnp.zeros((), products.dtype)
        else:
            inputs, targets, _ = parity.sample(jax.random.fold_in(key, skill), samples, skill=skill)
            products = targets[:, 0] / scale * _one_output(function(inputs), samples)
            error = jnp.std(products, ddof=1) / math.sqrt(samples)
        return products.mean(), error, jnp.mean((products - scale) ** 2) / 2

    strength, error, loss = jax.lax.map(measure, jnp.arange(parity.skills))
    return SkillStrength(strength, error, loss, jnp.asarray(parity.frequencies, loss.dtype) @ loss)


def _one_output(values: Any, samples: int) -> Any:
    """Reshape the values of a function with one output to a vector."""
    require(
        values.shape in ((samples,), (samples, 1)),
        f"the function returns values of shape {values.shape} for {samples} inputs",
        argument="function",
        value=values.shape,
        remedy="give a function with one output per input",
    )
    return values.reshape(samples)
