"""First and second moments of features, outputs and targets, accumulated over batches for the feature metrics."""

from __future__ import annotations

import dataclasses
from typing import Any

from dynascope.probes.features.samples import OutputFunction, Rows, sample_rows
from dynascope.results.named_tuples import short_repr
from dynascope.validation import array_namespace, require
from dynascope.validation.bounded_scalars import NonNegativeFloat, PositiveInt

__all__ = ["FeatureMoments", "feature_moments"]


@dataclasses.dataclass(frozen=True)
class FeatureMoments:
    """Moments of the columns (Φ, f̂, f*) over the samples seen so far.

    Moments of several batches can be added: `functools.reduce(operator.add, batches)`. Batches are centred before they
    are added, so large means do not reduce the precision.

    Attributes:
        samples: n.
        mean: Means of the columns, shape (p + C + c,).
        scatter: Σ (column − mean)(column − mean)ᵀ, shape (p + C + c, p + C + c).
        widths: (p, C, c), with c = 0 without targets.
        output_function: "logits" or "softmax", the function applied to the outputs.
        resolution: Relative singular values below this value cannot be distinguished from zero.
    """

    samples: PositiveInt
    mean: Any
    scatter: Any
    widths: tuple[int, int, int]
    output_function: OutputFunction
    resolution: NonNegativeFloat

    __repr__ = short_repr

    def __add__(self, other: FeatureMoments) -> FeatureMoments:
        """Add the moments of another batch.

        Raises:
            InputError: If the other batch has different widths or another output function.
        """
        mine, theirs = ((each.widths, each.output_function) for each in (self, other))
        require(
            mine == theirs,
            f"batches with (widths, output_function) {mine} and {theirs} cannot be added",
            argument="other",
            value=str(theirs),
            remedy="add batches of the same network, with the same output_function",
        )
        samples, shift = self.samples + other.samples, other.mean - self.mean
        spread = (self.samples * other.samples / samples) * (shift[:, None] * shift[None, :])
        return dataclasses.replace(
            self,
            samples=samples,
            mean=self.mean + (other.samples / samples) * shift,
            scatter=self.scatter + other.scatter + spread,
            resolution=max(self.resolution, other.resolution),
        )

    def rows(self) -> Rows:
        """Return p + C + c + 1 rows whose columns have the same inner products as the columns over all n samples."""
        xp = array_namespace(self.scatter)
        sizes = xp.sqrt(xp.linalg.diagonal(self.scatter))
        units = xp.where(sizes > 0, sizes, xp.ones_like(sizes))
        # Normalise the columns, so that large features do not reduce the precision of small outputs.
        powers, axes = xp.linalg.eigh(self.scatter / (units[:, None] * units[None, :]))
        powers = xp.where(powers > 0, powers, xp.zeros_like(powers))
        spread = xp.sqrt(powers)[:, None] * axes.T * units
        root = self.samples**0.5
        columns = xp.concat([root * self.mean[None, :], spread], axis=0)
        constant = xp.concat([xp.full_like(columns[:1, :1], root), xp.zeros_like(columns[1:, :1])], axis=0)
        p, outputs, targets = self.widths
        return Rows(
            features=columns[:, :p],
            outputs=columns[:, p : p + outputs],
            targets=columns[:, p + outputs :] if targets else None,
            constant=constant,
            samples=self.samples,
            # Storing squares halves the digits of singular values; the factor 30 allows for sums over batches.
            resolution=max(self.resolution, 30 * float(xp.finfo(columns.dtype).eps) ** 0.5),
        )


def feature_moments(
    features: Any, outputs: Any, targets: Any | None = None, *, output_function: OutputFunction = "logits"
) -> FeatureMoments:
    """Compute the moments of one batch; sum them over batches and pass the result to `feature_metrics`.

    Sums are in double precision if the library supports it (in JAX, within `jax.enable_x64(True)`).

    Cost: n P² operations for P = p + C + c columns, and memory for 2P² numbers and a copy of the batch.
    `feature_metrics` adds about 30 P³ operations once.

    Args:
        features: Φ, shape (n, p), as a NumPy, JAX or PyTorch array.
        outputs: f̂, the logits, shape (n, C), from the same library.
        targets: f*, shape (n, c), or integer labels 0..C−1, shape (n,), which are one-hot encoded.
        output_function: "logits" to use the outputs unchanged, "softmax" to use their softmax.

    Raises:
        InputError: If shapes do not match, values are not finite, or labels are outside 0..C−1.

    Example:
        >>> import functools, operator
        >>> import numpy as np
        >>> from dynascope.probes.features import feature_metrics
        >>> h = np.random.default_rng(0).normal(size=(60, 3))
        >>> batches = (feature_moments(h[i : i + 20], h[i : i + 20, :2]) for i in (0, 20, 40))
        >>> streamed = feature_metrics(functools.reduce(operator.add, batches))
        >>> whole = feature_metrics(h, h[:, :2])
        >>> bool(np.isclose(streamed.kappa_cka, whole.kappa_cka, rtol=1e-12))
        True
    """
    rows = sample_rows(features, outputs, targets, output_function)
    xp = array_namespace(rows.features)
    parts = [rows.features, rows.outputs] + ([] if rows.targets is None else [rows.targets])
    columns = xp.concat(parts, axis=1)
    mean = xp.mean(columns, axis=0)
    columns = columns - mean
    widths = (parts[0].shape[1], parts[1].shape[1], 0 if rows.targets is None else rows.targets.shape[1])
    return FeatureMoments(rows.samples, mean, columns.T @ columns, widths, output_function, rows.resolution)
