"""Class means and within-class scatter of features, accumulated over batches for the metrics of neural collapse."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from annotated_types import Ge

from dynascope.probes.features.samples import finite_matrix
from dynascope.results.named_tuples import short_repr
from dynascope.validation import array_namespace, checked, require, require_labels, require_room

__all__ = ["ClassMoments", "between_class_share", "class_moments"]


@dataclasses.dataclass(frozen=True)
class ClassMoments:
    """Class means and within-class scatter of features over the samples seen so far.

    Moments of several batches can be added: `functools.reduce(operator.add, batches)`. Batches are centred before they
    are added, so a within-class scatter much smaller than the features keeps its precision.

    Attributes:
        sizes: Number of samples of each class, as floating-point numbers, shape (C,).
        means: μ_c, shape (C, p); zero for a class without samples.
        scatter: Σ_j (h_j − μ_{y_j})(h_j − μ_{y_j})ᵀ, shape (p, p).
    """

    sizes: Any
    means: Any
    scatter: Any

    __repr__ = short_repr

    def __add__(self, other: ClassMoments) -> ClassMoments:
        """Add the moments of another batch.

        Raises:
            InputError: If the other batch has a different number of classes or features.
        """
        mine, theirs = tuple(self.means.shape), tuple(other.means.shape)
        require(
            mine == theirs,
            f"batches with (classes, features) {mine} and {theirs} cannot be added",
            argument="other",
            value=theirs,
            remedy="add batches of the same network, with the same number of classes",
        )
        xp = array_namespace(self.means, other.means)
        sizes, shift = self.sizes + other.sizes, other.means - self.means
        share = other.sizes / xp.where(sizes > 0, sizes, xp.ones_like(sizes))
        apart = xp.sqrt(self.sizes * share)[:, None] * shift
        return ClassMoments(sizes, self.means + share[:, None] * shift, self.scatter + other.scatter + apart.T @ apart)

    @property
    def samples(self) -> Any:
        """The number of samples n."""
        return array_namespace(self.sizes).sum(self.sizes)

    @property
    def centred_means(self) -> Any:
        """M_c = μ_c − μ_g, shape (C, p), where μ_g is the mean of the class means (not of the samples)."""
        return self.means - array_namespace(self.means).mean(self.means, axis=0)


@checked
def class_moments(features: Any, labels: Any, *, classes: Annotated[int, Ge(2)]) -> ClassMoments:
    """Compute the moments of one batch; sum them over batches and pass the result to `collapse_metrics`.

    Sums are in double precision if the library supports it (in JAX, within `jax.enable_x64(True)`).

    Cost: 2np² + 8npC operations; memory for p² + 2np + nC numbers in addition to the batch.

    Args:
        features: H, shape (n, p), as a NumPy, JAX or PyTorch array.
        labels: Integer classes 0..C−1, shape (n,), from the same library.
        classes: Number of classes C; a class may be missing from a batch.

    Raises:
        InputError: If shapes do not match, features are not finite, labels are not integers from 0 to C − 1, or there
            are fewer than two classes.

    Example:
        >>> import functools, operator
        >>> import numpy as np
        >>> draw = np.random.default_rng(0)
        >>> h, y = draw.normal(size=(60, 3)), np.arange(60) % 4
        >>> batches = (class_moments(h[i : i + 20], y[i : i + 20], classes=4) for i in (0, 20, 40))
        >>> streamed, whole = functools.reduce(operator.add, batches), class_moments(h, y, classes=4)
        >>> bool(np.allclose(streamed.scatter, whole.scatter, rtol=1e-13))
        True
    """
    xp = array_namespace(features, labels)
    h, _ = finite_matrix("features", features)
    require_room(3 * (len(h) + h.shape[1]) * classes, classes=classes)
    require_labels("labels", labels, len(h), classes=classes)
    # A cumulative sum of ones stays on the device of the features.
    numbers = xp.cumulative_sum(xp.broadcast_to(xp.ones_like(h[0, :1]), (classes,)), axis=0) - 1
    members = xp.astype(xp.astype(labels, h.dtype)[:, None] == numbers, h.dtype)
    sizes = xp.sum(members, axis=0)
    shares = members / xp.where(sizes > 0, sizes, xp.ones_like(sizes))
    means = shares.T @ h
    # A second pass corrects the rounding errors of the means.
    means = means + shares.T @ (h - members @ means)
    apart = h - members @ means
    return ClassMoments(sizes, means, apart.T @ apart)


def between_class_share(moments: ClassMoments) -> Any:
    """Compute the between-class fraction of the features' variance about the mean of the class means.

    Example:
        >>> import numpy as np
        >>> h = np.array([[1.0], [1.0], [-1.0], [-1.0]]) + np.array([[0.5], [-0.5], [0.5], [-0.5]])
        >>> float(between_class_share(class_moments(h, np.array([0, 0, 1, 1]), classes=2)))
        0.8
    """
    xp = array_namespace(moments.means)
    between = xp.sum(moments.sizes[:, None] * moments.centred_means**2)
    return between / (between + xp.linalg.trace(moments.scatter))
