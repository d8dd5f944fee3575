"""Counter-based Gaussian noise, generated several times faster on CPUs than by JAX.

Like JAX, this module uses Threefry (Salmon, Moraes, Dror, Shaw, Parallel random numbers: as easy as 1, 2, 3, 2011). The
rounds of Threefry are unrolled so that CPU compilers can fuse them with the operations that use the numbers.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["noise_key", "normal_noise", "threefry"]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def noise_key(seed: int) -> np.ndarray:
    """Convert a seed to the key for `normal_noise`: two words, shape (2,).

    Example:
        >>> noise_key(7).tolist()
        [0, 7]
    """
    return np.asarray(jax.random.key_data(jax.random.key(seed)), np.uint32)


def threefry(key: tuple[jax.Array, jax.Array], first: jax.Array, second: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Compute Threefry-2x32 with twenty rounds, which maps each pair of counters to two random 32-bit words.

    Args:
        key: Two 32-bit words.
        first: First counter, or an array of counters.
        second: Second counter, of the same shape.
    """
    keys = (*key, key[0] ^ key[1] ^ jnp.uint32(_PARITY))
    first, second = first + keys[0], second + keys[1]
    for group in range(5):
        for by in _ROTATIONS[group % 2]:
            first = first + second
            second = ((second << jnp.uint32(by)) | (second >> jnp.uint32(32 - by))) ^ first
        first = first + keys[(group + 1) % 3]
        second = second + keys[(group + 2) % 3] + jnp.uint32(group + 1)
    return first, second


def normal_noise(key: tuple[jax.Array, jax.Array], step: jax.Array, lanes: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Draw two independent standard normal numbers for each lane at one step.

    The numbers are in single precision, and their absolute values are at most 5.4.

    Args:
        key: Two 32-bit words, such as those of a JAX key.
        step: Index of the step.
        lanes: Indices of the lanes.
    """
    first, second = threefry(key, lanes, jnp.zeros_like(lanes) + jnp.asarray(step).astype(np.uint32))
    return _normal(first), _normal(second)


def _normal(bits: jax.Array) -> jax.Array:
    # Midpoints of 2²⁴ equal intervals of (−1, 1), which exclude the end points.
    uniform = (bits >> jnp.uint32(8)).astype(np.int32).astype(np.float32) * np.float32(2**-23)
    return np.float32(np.sqrt(2)) * jax.lax.erf_inv(uniform + np.float32(2**-24 - 1))
