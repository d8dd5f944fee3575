"""Error of the asymptotic theory of kernel regression at a finite number of samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynascope.theory.features.kernel_regression import KernelRegression

__all__ = ["asymptotic_error", "unfitted_share"]


def asymptotic_error(found: KernelRegression, samples: ArrayLike) -> float:
    """Expected relative error of the theory for finite numbers n of samples.

    It is the maximum over n of 1/(n − Σ_k L_k²), where L_k are the learnabilities.
    """
    return float(np.max(np.asarray(found.overfitting_coefficient) / np.asarray(samples)))


def unfitted_share(found: KernelRegression, samples: ArrayLike, ridge: float) -> float:
    """The smallest δ/(n κ), the fraction of the labels that the ridge leaves unfitted."""
    return float(np.min(ridge / (np.asarray(samples) * np.asarray(found.effective_ridge)))) if ridge > 0 else 0.0
