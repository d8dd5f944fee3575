"""Turn of the tangent kernel after its silent alignment, for correlated inputs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from annotated_types import IsFinite
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import ONE_OUTPUT, SMALL_START
from dynascope.theory.domain import covers
from dynascope.theory.units import in_units
from dynascope.validation import require, require_shape

__all__ = ["KernelTurn", "kernel_turn"]


class KernelTurn(NamedTuple):
    """The change of the tangent kernel between its silent alignment and the end of training.

    Attributes:
        cosine: c, the cosine between b = E[x y] and β* = Σ⁻¹ b.
        weight_distance: Kernel distance 1 − cos between the matrices M of the kernels X M Xᵀ.
        kernel_distance: Kernel distance between the kernels on data of covariance Σ.
        target: β*, shape (d,).
    """

    cosine: float
    weight_distance: float
    kernel_distance: float
    target: Float[np.ndarray, " d"]

    __repr__ = short_repr


@covers(
    network="two-layer linear, one output",
    data="any invertible covariance of the inputs, any targets",
    start="infinitely small",
    gives="the kernel distance between the aligned plateau and the end of training",
    reference="arXiv:2111.00034",
    exact=False,
    assumes=(ONE_OUTPUT, SMALL_START),
)
@in_units("covariance", "correlation", covariance="x^2", correlation="x y", gives={"target": "y x^-1"})
def kernel_turn(
    covariance: IsFinite[Float[np.ndarray, "d d"]], correlation: IsFinite[Float[np.ndarray, " d"]]
) -> KernelTurn:
    """Compute how far the tangent kernel of f(x) = aᵀW x turns after the alignment, for initial weights α → 0.

    S = (1 − c²)/(d + 3), c = b̂·v, v = β*/‖β*‖, β* = Σ⁻¹ b

    On the plateau, the kernel is X M Xᵀ with M ∝ I + b̂ b̂ᵀ (`alignment_plateau`); at the end, it has M ∝ I + v vᵀ. The
    distance on data replaces the product tr(P Q) of the matrices by tr(P Σ Q Σ). The alignment is silent only if b is
    an eigenvector of Σ, for example on whitened inputs. Most of the turn takes place while the loss falls.

    Args:
        covariance: Σ = E[x xᵀ], symmetric and positive definite, shape (d, d).
        correlation: b = E[x y], not zero, shape (d,).

    Returns:
        The cosine, the two distances and the target map.

    Raises:
        InputError: If a value is not finite, shapes do not match, Σ is not symmetric and positive definite, or b is
            zero.

    References:
        Atanasov, Bordelon, Pehlevan, arXiv:2111.00034, for anisotropic inputs; the distances are derived here.

    Example:
        >>> turn = kernel_turn(np.diag([1.0, 0.25]), [1.0, 1.0])
        >>> f"{turn.cosine:.4f} {turn.weight_distance:.4f} {turn.kernel_distance:.4f}"
        '0.8575 0.0529 0.0199'
    """
    require_shape("covariance", covariance, (..., None, None))
    require_shape("covariance", covariance, (len(covariance), len(covariance)))
    require_shape("correlation", correlation, (len(covariance),))
    size = np.linalg.norm(correlation)
    require(
        size > 0,
        "correlation is zero",
        argument="correlation",
        value=0.0,
        remedy="give inputs and targets that are correlated",
    )
    target = np.linalg.solve(_require_positive(covariance), correlation)
    start, end = correlation / size, target / np.linalg.norm(target)
    # 1 − c² = ‖b̂ − c v‖², without cancellation.
    cosine = float(start @ end)
    turned = np.sum((start - cosine * end) ** 2) / (len(start) + 3)
    return KernelTurn(cosine, float(turned), _distance_on_data(covariance, start, end), target)


def _require_positive(covariance: np.ndarray) -> np.ndarray:
    """Return the covariance after checking that it is symmetric and positive definite."""
    largest = np.max(np.abs(covariance))
    values = np.linalg.eigvalsh(covariance)
    require(
        np.allclose(covariance, covariance.T, rtol=0, atol=1e-10 * largest) and values[0] > 1e-14 * values[-1] > 0,
        "covariance is not symmetric and positive definite",
        argument="covariance",
        value=float(values[0]),
        remedy="give E[x xᵀ] of inputs that span all directions",
    )
    return covariance


def _distance_on_data(covariance: np.ndarray, start: np.ndarray, end: np.ndarray) -> float:
    """Return the kernel distance between I + u uᵀ and I + v vᵀ on data, as half a squared distance."""
    root = np.linalg.cholesky(covariance / np.max(np.abs(covariance)))
    kernels = [root.T @ root + np.outer(root.T @ each, root.T @ each) for each in (start, end)]
    first, second = (kernel / np.linalg.norm(kernel) for kernel in kernels)
    return float(np.sum((first - second) ** 2) / 2)
