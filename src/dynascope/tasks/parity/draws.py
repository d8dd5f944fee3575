"""Sampling of multitask sparse parity in JAX, inside and outside compiled loops."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, UInt32

from dynascope.compilation import jit

__all__ = ["ManySkills", "ParitySample", "draw"]


class ParitySample(NamedTuple):
    """Samples of multitask sparse parity.

    Attributes:
        inputs: Shape (n, n_s + n_b): the one-hot skill, followed by the bits as zeros and ones.
        targets: S or −S, shape (n, 1).
        skill: Index of the skill of each sample, from 0, shape (n,).
    """

    inputs: Float[Array, "n d"]
    targets: Float[Array, "n 1"]
    skill: Int[Array, " n"]


@runtime_checkable
class ManySkills(Protocol):
    """Interface that multitask parities provide for drawing samples and measuring skills.

    Instances must be hashable, because they are static arguments of compiled programs.
    """

    @property
    def skills(self) -> int:
        """Number of skills n_s."""
        ...

    @property
    def bits(self) -> int:
        """Number of bits n_b."""
        ...

    @property
    def target_scale(self) -> float:
        """Target scale S."""
        ...

    @property
    def frequencies(self) -> np.ndarray:
        """Probability P(k) of each skill, shape (n_s,)."""
        ...

    @property
    def relevant(self) -> np.ndarray:
        """Indices M_k of the relevant bits of each skill, shape (n_s, m)."""
        ...

    def all_bits(self) -> np.ndarray:
        """All values of the bits, shape (2^n_b, n_b)."""
        ...

    def sample(self, key: Any, samples: int, *, skill: Any = None) -> ParitySample:
        """Draw samples, of a single skill if one is given."""
        ...


def draw(parity: ManySkills, key: Any, skill: Any, samples: int, dtype: Any) -> ParitySample:
    """Implement `SparseParity.sample`, compiled once per task size and number of samples."""
    thresholds, masks = _thresholds(parity.frequencies), _masks(parity.relevant, parity.bits)
    return _drawn(key, skill, thresholds, masks, np.asarray(parity.target_scale, float), parity.bits, samples, dtype)


@functools.partial(jit, static_argnums=(5, 6, 7))
def _drawn(
    key: Any, skill: Any, thresholds: Any, masks: Any, target_scale: Any, length: int, samples: int, dtype: Any
) -> ParitySample:
    skill_key, bits_key = jax.random.split(key)
    if skill is None:
        uniform = jax.random.bits(skill_key, (samples,), jnp.uint32)
        skill = jnp.searchsorted(thresholds, uniform, side="right").astype(jnp.int32)
    else:
        skill = jnp.full(samples, skill, jnp.int32)
    words = jax.random.bits(bits_key, (samples, masks.shape[1]), jnp.uint32)
    ones = jax.lax.population_count(words & masks[skill]).sum(axis=1)
    bits = (words[:, :, None] >> jnp.arange(32, dtype=jnp.uint32)) & 1
    bits = bits.reshape(samples, -1)[:, :length].astype(dtype)
    inputs = jnp.concatenate([jax.nn.one_hot(skill, len(masks), dtype=dtype), bits], axis=1)
    targets = jnp.where(ones % 2 == 0, target_scale, -target_scale).astype(dtype)
    return ParitySample(inputs, targets[:, None], skill)


def _thresholds(frequencies: np.ndarray) -> UInt32[np.ndarray, " thresholds"]:
    """The thresholds 2³² Σ_{j≤k} P(j) for all skills except the last."""
    cumulative = np.cumsum(frequencies)[:-1]
    return np.minimum(np.rint(cumulative * 2.0**32), 2**32 - 1).astype(np.uint32)


def _masks(relevant: np.ndarray, bits: int) -> UInt32[np.ndarray, "skill word"]:
    """Bit masks of the relevant bits of each skill, as 32-bit words with the first bit lowest."""
    masks = np.zeros((len(relevant), -(-bits // 32)), dtype=np.uint32)
    rows = np.arange(len(relevant))[:, None]
    np.bitwise_or.at(masks, (rows, relevant // 32), np.uint32(1) << (relevant % 32).astype(np.uint32))
    return masks
