"""Truncated singular value decomposition by training a linear autoencoder with weight decay."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from dynascope.validation import require, require_kind, require_shape
from dynascope.validation.bounded import NonNegativeInt, PositiveFloat, PositiveInt

__all__ = ["RankSVD"]


class RankSVD(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Truncated singular value decomposition, computed by training a linear autoencoder with weight decay.

        min ‖X − X A B‖² + λ (‖A‖² + ‖B‖²)

    At the minimum, the encoder is A = Bᵀ. The right singular vectors of the decoder B are the principal directions of
    X in order, and the singular values d_i of B determine those of X: σ_i² = λ/(1 − d_i²). The data are not centred.

    Each iteration minimises the loss within the row space of the decoder and then refits the decoder to the data by
    ridge regression. The error of the directions falls by the factor (σ_{k+p+1}/σ_k)² per iteration, where p is the
    number of additional latents. An iteration costs O(samples · features · (k + p)) operations.

    Args:
        n_components: k ≥ 1, at most the rank of the data.
        regularization: λ, with 0 < λ < σ_k²; by default σ_k²/2. Every such λ yields the same decomposition.
        n_oversamples: p ≥ 0, the number of additional latents during training.
        tol: Training stops when ‖Xᵀu_i − σ_i v_i‖/σ_1 is at most this value for every component.
        max_iter: Largest number of iterations.
        random_state: Seed of the initial decoder, an integer, a `numpy.random.RandomState` or None.

    Attributes:
        components_: Principal directions v_i as rows, shape (n_components, features).
        singular_values_: σ_1 ≥ … ≥ σ_k, shape (n_components,).
        decoder_: B at the minimum, in the basis of the components, shape (n_components, features). The encoder is its
            transpose.
        regularization_: λ.
        n_iter_: Number of iterations.
        n_features_in_: Number of features.
        feature_names_in_: Names of the features, if X has string column names.

    Raises:
        InputError: From `fit`, if a parameter is outside its domain, if k exceeds the rank of the data, or if λ is so
            large that the autoencoder loses a component.

    Warns:
        sklearn.exceptions.ConvergenceWarning: From `fit`, if the tolerance is not reached.

    References:
        Kunin, Bloom, Goeva, Seed, arXiv:1901.08168, section 5.

    Example:
        >>> model = RankSVD(n_components=1).fit([[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
        >>> model.singular_values_.round(9), model.components_.round(9) + 0.0, round(model.regularization_, 9)
        (array([2.]), array([[1., 0.]]), 2.0)
        >>> model.transform([[3.0, 5.0]]).round(9)
        array([[3.]])
    """

    # scikit-learn requires that parameters are checked in `fit`; `Any` turns off the check at construction.
    def __init__(
        self,
        n_components: int | Any = 2,
        *,
        regularization: float | Any | None = None,
        n_oversamples: int | Any = 10,
        tol: float | Any = 1e-13,
        max_iter: int | Any = 1000,
        random_state: Any = 0,
    ):
        self.n_components = n_components
        self.regularization = regularization
        self.n_oversamples = n_oversamples
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> RankSVD:  # noqa: N803
        """Train the autoencoder.

        Args:
            X: Data, shape (samples, features), dense or sparse.
            y: Ignored.
        """
        require_kind(PositiveInt, n_components=self.n_components, max_iter=self.max_iter)
        require_kind(NonNegativeInt, n_oversamples=self.n_oversamples)
        require_kind(PositiveFloat, tol=self.tol)
        if self.regularization is not None:
            require_kind(PositiveFloat, regularization=self.regularization)
        x: Any = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=np.float64)
        require(
            self.n_components <= min(x.shape),
            f"n_components is {self.n_components}, but X has shape {x.shape}",
            argument="n_components",
            value=self.n_components,
            remedy=f"choose at most {min(x.shape)} components",
        )
        left, sigma, directions = self._train(x)
        require(
            sigma[-1] > np.finfo(float).eps * max(x.shape) * sigma[0],
            f"n_components is {self.n_components}, which exceeds the rank of X",
            argument="n_components",
            value=self.n_components,
            remedy="choose fewer components",
        )
        smallest = float(sigma[-1] ** 2)
        weight = smallest / 2 if self.regularization is None else float(self.regularization)
        require(
            weight < smallest * (1 - np.finfo(float).eps * max(x.shape)),
            f"regularization is {weight:g}, but the smallest σ² of the components is only {smallest:g}",
            argument="regularization",
            value=weight,
            remedy="choose a smaller regularization, or fewer components",
        )
        _, self.components_ = svd_flip(left, directions, u_based_decision=False)
        self.singular_values_ = sigma
        self.regularization_ = weight
        self.decoder_ = np.sqrt(1 - weight / sigma**2)[:, None] * self.components_
        return self

    def _train(self, x: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The left singular vectors, singular values and right singular vectors of the components."""
        latents = min(self.n_components + self.n_oversamples, *x.shape)
        rows = x.T @ check_random_state(self.random_state).normal(size=(x.shape[0], latents))
        error, self.n_iter_ = np.inf, 0
        while error > self.tol and self.n_iter_ < self.max_iter:
            basis, _ = np.linalg.qr(rows)
            # The minimum within this row space has the singular vectors of X restricted to it.
            left, sigma, rotation = np.linalg.svd(x @ basis, full_matrices=False)
            directions = basis @ rotation.T
            # Ridge regression of the data on the codes X A gives these rows up to their norms.
            rows = x.T @ left
            residuals = np.linalg.norm((rows - directions * sigma)[:, : self.n_components], axis=0)
            error = residuals.max() / max(sigma[0], np.finfo(float).tiny)
            self.n_iter_ += 1
        if error > self.tol:
            problem = f"RankSVD did not converge in {self.max_iter} iterations; the residual is {error:.1e}"
            remedy = "increase max_iter or n_oversamples, or choose n_components at a gap between singular values"
            warnings.warn(f"{problem}: {remedy}", ConvergenceWarning, stacklevel=3)
        kept = slice(self.n_components)
        return left[:, kept], sigma[kept], directions.T[kept]

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """Coordinates of samples along the components, X Vᵀ.

        Args:
            X: Data, shape (samples, features), dense or sparse.
        """
        check_is_fitted(self)
        x: Any = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=np.float64, reset=False)
        return x @ self.components_.T

    def inverse_transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """Samples with given coordinates along the components.

        Args:
            X: Coordinates, shape (samples, n_components).

        Raises:
            InputError: If the number of coordinates differs from the number of components.
        """
        check_is_fitted(self)
        codes = np.asarray(check_array(X), np.float64)
        require_shape("X", codes, (None, self._n_features_out))
        return codes @ self.components_

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
