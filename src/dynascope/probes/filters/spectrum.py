"""Spectral concentration and roughness of filters."""

from __future__ import annotations

import math
from typing import Any

from dynascope.probes.filters.planes import planes
from dynascope.validation import array_namespace, checked

__all__ = ["roughness", "spectral_concentration"]

_LEAST = {"least": 2, "remedy": "pass filters of at least 2 × 2 pixels"}


@checked
def spectral_concentration(filters: Any) -> Any:
    r"""Compute the concentration of the power spectrum of each filter, from zero (flat) to one (a single frequency).

        1 − H(p) / log(k² − 1),   H(p) = −Σ_q p_q log p_q

    p is the two-dimensional power spectrum of the filter without its constant term, normalised to one. A real plane
    wave has power at ±q, and its concentration is 1 − log 2 / log(k² − 1). Filters of white noise have a positive
    concentration, which `white_noise_scores` computes.

    Cost: about 10 k² log₂ k operations per filter, and memory for 4k² numbers.

    Args:
        filters: Shape (n, k, k), or (n, k, k, channels) for colour, as a NumPy, JAX or PyTorch array of floating-point
            numbers; k ≥ 2. Colour is replaced by its first principal component over the pixels of a filter.

    Returns:
        Shape (n,), between zero and one. The spectrum of a constant filter among others is undefined, and its
        result is NaN.

    Raises:
        InputError: If the filters have another shape, values that are not finite, or are all constant.

    Example:
        >>> import numpy as np
        >>> wave = np.cos(4 * np.pi * np.arange(9) / 9) * np.ones((9, 1))
        >>> spectral_concentration(wave[None]).round(6)
        array([0.84182])
    """
    xp = array_namespace(filters=filters)
    found = planes(filters, **_LEAST)
    count, side, _ = found.values.shape
    amplitudes = xp.reshape(xp.fft.fftn(found.values, axes=(1, 2)), (count, side * side))[:, 1:]
    power = xp.real(amplitudes) ** 2 + xp.imag(amplitudes) ** 2
    total = xp.sum(power, axis=1, keepdims=True)
    p = power / xp.where(total > 0, total, xp.ones_like(total))
    entropy = -xp.sum(p * xp.log(xp.where(p > 0, p, xp.ones_like(p))), axis=1)
    return _defined(xp, 1 - entropy / math.log(side**2 - 1), found.varies)


@checked
def roughness(filters: Any) -> Any:
    """Compute the roughness of each filter, its squared differences between neighbouring pixels over its squared norm.

        Σ [(∇_x F)² + (∇_y F)²] / Σ F²

    The differences are periodic, and the mean of F is subtracted. The result is between 0 and 8. It is
    4 − 2 cos(2πq_x/k) − 2 cos(2πq_y/k) for a plane wave of integer frequencies (q_x, q_y), and 4k²/(k² − 1) on average
    for white noise.

    Cost: about 10 k² operations per filter, and memory for 4k² numbers.

    Args:
        filters: Shape (n, k, k), or (n, k, k, channels) for colour, as a NumPy, JAX or PyTorch array of floating-point
            numbers; k ≥ 2. Colour is replaced by its first principal component over the pixels of a filter.

    Returns:
        Shape (n,). The roughness of a constant filter among others is undefined, and its result is NaN.

    Raises:
        InputError: If the filters have another shape, values that are not finite, or are all constant.

    Example:
        >>> import numpy as np
        >>> wave = np.cos(4 * np.pi * np.arange(9) / 9) * np.ones((9, 1))
        >>> roughness(wave[None]).round(6), (2 - 2 * np.cos([4 * np.pi / 9])).round(6)
        (array([1.652704]), array([1.652704]))
    """
    xp = array_namespace(filters=filters)
    found = planes(filters, **_LEAST)
    values = found.values
    total = xp.sum(values**2, axis=(1, 2))
    steps = sum(xp.sum((xp.roll(values, -1, axis=axis) - values) ** 2, axis=(1, 2)) for axis in (1, 2))
    return _defined(xp, steps / xp.where(found.varies, total, xp.ones_like(total)), found.varies)


def _defined(xp: Any, values: Any, varies: Any) -> Any:
    return xp.where(varies, values, xp.full_like(values, math.nan))
