"""Distances between kernels, and alignment of kernels with each other and with the targets."""

from __future__ import annotations

import warnings
from typing import Any

from dynascope.probes.kernel.conventions import NeuralTangentKernel
from dynascope.validation import array_namespace, holds, require, require_finite_values
from dynascope.validation.bounded_scalars import PositiveFloat

__all__ = ["centred_alignment", "kernel_distance", "kernel_velocity", "relative_change", "target_alignment"]

_BIASED = 0.5  # alignment of unrelated kernels above which a warning is given, e.g. with n = p features


def kernel_distance(kernel: Any, other: Any, *, centred: bool = False) -> Any:
    """Compute the distance S(K, K') = 1 − ⟨K, K'⟩/(‖K‖‖K'‖), which is independent of the kernels' scales.

    For positive semidefinite kernels, S is between 0 and 1. S equals one minus the uncentred alignment of the kernels,
    and is computed as ½‖K/‖K‖ − K'/‖K'‖‖², in float64 if the library supports it, to preserve the precision of small
    distances. With `centred`, S is one minus the `centred_alignment` (of HKH, H = I − 11ᵀ/n). For few samples, that
    alignment is biased towards 1 and the centred distance towards 0.

    Cost: about 8 operations per entry and two copies of the kernel.

    Args:
        kernel: K, shape (n, n), or the full kernel (n, c, n, c); an array or the result of `neural_tangent_kernel`.
            Both arrays must come from one library.
        other: K', of the same shape.
        centred: Whether to centre both kernels first; requires shape (n, n).

    Raises:
        InputError: If shapes do not match, values are not finite, or a kernel is zero (after centring).

    Warns:
        UserWarning: If the kernels have one entry, so the distance is always zero.

    References:
        Deep learning versus kernel learning, arXiv:2010.15110, eq. (4).

    Example:
        >>> import numpy as np
        >>> float(kernel_distance(np.eye(2), np.ones((2, 2))).round(4))
        0.2929
    """
    return _distance(*_pair(kernel, other, centred=centred, name="other"), "other")


def kernel_velocity(kernel: Any, later: Any, *, duration: PositiveFloat, centred: bool = False) -> Any:
    """Compute the velocity of a kernel from its `kernel_distance` S over a time interval.

        S(K_t, K_{t+Δ})/Δ

    Cost: about 8 operations per entry and two copies of the kernel.

    Args:
        kernel: K_t, as for `kernel_distance`.
        later: K_{t+Δ}.
        duration: Δ > 0 in gradient-flow time.
        centred: Whether to centre both kernels first.

    Raises:
        InputError: As for `kernel_distance`, or if the duration is not positive.

    Example:
        >>> import numpy as np
        >>> float(kernel_velocity(np.eye(2), np.ones((2, 2)), duration=0.5).round(4))
        0.5858
    """
    return _distance(*_pair(kernel, later, centred=centred, name="later"), "later") / duration


def relative_change(kernel: Any, later: Any) -> Any:
    """Compute ‖K_t − K_0‖/‖K_0‖, which includes changes of scale that `kernel_distance` ignores.

    Cost: about 5 operations per entry and two copies of the kernel.

    Args:
        kernel: K_0, as for `kernel_distance`.
        later: K_t.

    Raises:
        InputError: If shapes do not match, values are not finite, or K_0 = 0.

    Example:
        >>> import numpy as np
        >>> float(relative_change(np.eye(2), 3 * np.eye(2)))
        2.0
    """
    one, two = _pair(kernel, later, centred=False, name="later")
    size = _size(one, "kernel")
    return _norm((two - one) / size) / _norm(one / size)


def centred_alignment(kernel: Any, other: Any, *, debiased: bool = False) -> Any:
    """Compute the centred kernel alignment (CKA) of two kernels.

        ⟨HKH, HK'H⟩/(‖HKH‖‖HK'H‖),   H = I − 11ᵀ/n

    CKA is independent of the kernels' scales and of added constants, but it is biased towards 1 for few samples.
    Unrelated kernels should score 0; yet if the samples of one kernel are permuted at random, the average CKA is
    tr(HKH) tr(HK'H)/((n − 1)‖HKH‖‖HK'H‖). For independent Gaussian features of widths p and q, this average is about
    √(pq/((p + n)(q + n))): 0.5 for n = p = q, and 0.91 for n = p/10.

    `debiased` replaces the inner product and both norms with unbiased estimates of the Hilbert-Schmidt independence
    criterion, ⟨A, A'⟩ with A_ij = K_ij − (r_i + r_j)/(n − 2) + s/((n − 1)(n − 2)) for i ≠ j and A_ii = 0. Here r_i are
    the row sums of K without its diagonal, and s = Σ r_i. Unrelated kernels then score about 0, and values lie between
    −1 and 1.

    Cost: about 10 operations per entry and two copies of the kernel; twice that if debiased.

    Args:
        kernel: K, shape (n, n), symmetric; an array or the result of `neural_tangent_kernel`. Both arrays must come
            from one library.
        other: K', shape (n, n).
        debiased: Whether to remove the bias; requires n ≥ 4.

    Raises:
        InputError: If shapes do not match, values are not finite, or a kernel is zero after centring; if debiased, also
            if a kernel is constant off the diagonal.

    Warns:
        UserWarning: If the alignment is not debiased and its average over random permutations of the samples exceeds
            0.5. No warning is given under JAX tracing.

    References:
        Algorithms for Learning Kernels Based on Centered Alignment, arXiv:1203.0550, eq. (2). Debiased: Song et al.,
        Feature selection via dependence maximization (2012), eq. (5); Nguyen, Raghu, Kornblith, arXiv:2010.15327.

    Example:
        >>> import numpy as np
        >>> one, two = np.random.default_rng(0).normal(size=(2, 100, 60))
        >>> for debiased in (False, True):
        ...     print(f"{centred_alignment(one @ one.T, two @ two.T, debiased=debiased):.2f}")
        0.36
        -0.02
    """
    one, two = _pair(kernel, other, centred=True, name="other")
    require(
        not debiased or one.shape[0] > 3,
        f"debiased is True, but the kernels have only {one.shape[0]} samples",
        argument="debiased",
        value=one.shape[0],
        remedy="give at least four samples",
    )
    xp = array_namespace(one)
    if debiased:
        return xp.sum(_unit(_without_diagonal(one), "kernel") * _unit(_without_diagonal(two), "other"))
    one, two = _unit(one, "kernel"), _unit(two, "other")
    shuffled = xp.linalg.trace(one) * xp.linalg.trace(two) / max(one.shape[0] - 1, 1)
    if not holds(shuffled <= _BIASED):
        warnings.warn(
            # The message omits the value, so that Python shows the warning only once in a loop.
            f"the alignment of kernels of {one.shape[0]} samples is biased: the average over random permutations "
            f"exceeds {_BIASED}; set debiased=True, or give more samples",
            stacklevel=4,  # skips the argument checks
        )
    return xp.sum(one * two)


def target_alignment(kernel: Any, targets: Any, *, centred: bool = False) -> Any:
    """Compute the alignment of a kernel with the targets.

        ⟨K, YYᵀ⟩/(‖K‖‖YYᵀ‖)

    The alignment is computed from Σ_c y_cᵀ K y_c and ‖YᵀY‖, so without centring no second n × n matrix is formed. For
    imbalanced classes, use the centred form with HKH and HYYᵀH, H = I − 11ᵀ/n.

    Cost: 2n²c operations, and memory for one copy of the kernel, or two if it is centred.

    Args:
        kernel: K, shape (n, n); an array or the result of `neural_tangent_kernel`. Both arrays must come from one
            library.
        targets: Y, shape (n, c) or (n,).
        centred: Whether to centre both.

    Raises:
        InputError: If shapes do not match, values are not finite, or the kernel or the targets are zero (after
            centring).

    Example:
        >>> import numpy as np
        >>> y = np.array([1.0, -1.0])
        >>> float(target_alignment(y[:, None] * y, y).round(12)), float(target_alignment(np.eye(2), y).round(4))
        (1.0, 0.7071)
    """
    kernel = _array(kernel)
    xp = array_namespace(kernel, targets)
    y = targets[:, None] if len(targets.shape) == 1 else targets
    require(
        len(kernel.shape) == 2 and len(y.shape) == 2 and tuple(kernel.shape) == (y.shape[0],) * 2 and min(y.shape) > 0,
        f"kernel has shape {tuple(kernel.shape)}, and targets has shape {tuple(targets.shape)}",
        argument="targets",
        value=tuple(targets.shape),
        remedy="give a kernel of shape (n, n) and targets of shape (n, c)",
    )
    k, y = _double(kernel), _double(y)
    for name, values in (("kernel", k), ("targets", y)):
        require_finite_values(name, values, remedy="check the computation of this array")
    if centred:
        original = _norm(y)
        k, y = _centred(k), y - xp.mean(y, axis=0, keepdims=True)
        # After centring, constant targets are rounding errors, not a direction.
        y = xp.where(_norm(y) > 8 * xp.finfo(y.dtype).eps * original, y, xp.zeros_like(y))
    k, y = _unit(k, "kernel"), _unit(y, "targets")
    return xp.sum(y * (k @ y)) / _norm(y.T @ y)


def _distance(one: Any, two: Any, name: str) -> Any:
    if one.shape[0] == 1 and len(one.shape) == 2:
        warnings.warn("the distance between kernels of one example is always zero", stacklevel=3)
    return array_namespace(one).sum((_unit(one, "kernel") - _unit(two, name)) ** 2) / 2


def _pair(kernel: Any, other: Any, *, centred: bool, name: str) -> tuple[Any, Any]:
    kernel, other = _array(kernel), _array(other)
    array_namespace(kernel, other)
    shape = tuple(kernel.shape)
    half = len(shape) // 2
    square = len(shape) in (2, 4) and shape[:half] == shape[half:] and min(shape) > 0
    require(
        tuple(other.shape) == shape and square and not (centred and len(shape) == 4),
        f"the kernels have shapes {shape} and {tuple(other.shape)}",
        argument=name,
        value=tuple(other.shape),
        remedy="give two kernels of shape (n, n), or of shape (n, c, n, c) if they are not centred",
    )
    one, two = _double(kernel), _double(other)
    for each, values in (("kernel", one), (name, two)):
        require_finite_values(each, values, remedy="check the computation of this array")
    return (_centred(one), _centred(two)) if centred else (one, two)


def _array(kernel: Any) -> Any:
    """Return the values of a `NeuralTangentKernel`, and any other kernel unchanged."""
    return kernel.values if isinstance(kernel, NeuralTangentKernel) else kernel


def _centred(kernel: Any) -> Any:
    """Compute HKH; set it to zero if only rounding errors remain."""
    xp = array_namespace(kernel)
    rows = kernel - xp.mean(kernel, axis=0, keepdims=True)
    found = rows - xp.mean(rows, axis=1, keepdims=True)
    floor = 8 * xp.finfo(kernel.dtype).eps * xp.max(xp.abs(kernel))
    return xp.where(xp.max(xp.abs(found)) <= floor, xp.zeros_like(found), found)


def _without_diagonal(kernel: Any) -> Any:
    """Remove the diagonal and centre the rest so that its rows sum to zero; set pure rounding errors to zero."""
    xp = array_namespace(kernel)
    n, apart = kernel.shape[0], _off_diagonal(kernel)
    rows, columns = (xp.sum(apart, axis=axis, keepdims=True) / (n - 2) for axis in (1, 0))
    found = _off_diagonal(apart - rows - columns + xp.sum(rows) / (n - 1))
    floor = 8 * xp.finfo(kernel.dtype).eps * xp.max(xp.abs(kernel))
    return xp.where(xp.max(xp.abs(found)) <= floor, xp.zeros_like(found), found)


def _off_diagonal(kernel: Any) -> Any:
    xp = array_namespace(kernel)
    return xp.tril(kernel, k=-1) + xp.triu(kernel, k=1)


def _unit(values: Any, argument: str) -> Any:
    """Divide the array by its Frobenius norm, without overflow or underflow in the squares."""
    scaled = values / _size(values, argument)
    return scaled / _norm(scaled)


def _size(values: Any, argument: str) -> Any:
    """Return the largest absolute entry, after checking that it is not zero."""
    xp = array_namespace(values)
    size = xp.max(xp.abs(values))
    require(
        holds(size > 0),
        f"{argument} is zero, possibly after centring",
        argument=argument,
        value=0.0,
        remedy="give values that are not all equal",
    )
    return size


def _norm(values: Any) -> Any:
    xp = array_namespace(values)
    return xp.sqrt(xp.sum(values * values))


def _double(values: Any) -> Any:
    """Convert the values to float64, or in JAX to the widest enabled type."""
    xp = array_namespace(values)
    if xp.__name__.startswith("jax"):
        # JAX reads `float` as its widest enabled format.
        return values if values.dtype == xp.float64 else xp.astype(values, float)
    return xp.astype(values, xp.float64)
