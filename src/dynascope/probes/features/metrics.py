"""All metrics of the features of a network at one checkpoint."""

from __future__ import annotations

import warnings
from typing import Annotated, Any, NamedTuple

from dynascope.probes.features.modes import (
    covered,
    effective_dimension,
    mode_columns,
    projection,
    row_kappa,
    row_modes,
)
from dynascope.probes.features.moments import FeatureMoments
from dynascope.probes.features.samples import OutputFunction, Rows, check_samples, sample_rows
from dynascope.results.named_tuples import short_repr
from dynascope.validation import array_namespace, checked, holds, require
from dynascope.validation.bounded_scalars import PositiveFloat

__all__ = ["FeatureMetrics", "feature_metrics"]

_EXCESS = 0.01  # excess of the summed held-out utilizations over one, above which a warning is given
_IMBALANCE = 1.5  # ratio of the largest to the smallest class, above which a warning is given


class FeatureMetrics(NamedTuple):
    """Metrics of the features of a network; `mode` is in descending order of intensity, with zeros beyond the rank.

    Attributes:
        intensity: ρ_k over `mode`, the eigenvalues of the feature kernel on the training samples.
        effective_dimension: Effective dimension of the intensity, with the first mode treated according to
            `exclude_first`.
        effective_dimension_all_modes: Effective dimension of the intensity of all modes.
        constant_overlap: |⟨e_1|1⟩|/‖e_1‖.
        quality: Q*_k over `mode`, the share of the targets' span that the mode covers; None without targets, like the
            quantities derived from it.
        cumulative_quality: Π*(k) over `mode`.
        effective_dimension_quality: Effective dimension of the quality.
        utilization: Q̂_k over `mode`, the share of the outputs' span that the mode covers.
        cumulative_utilization: Π̂(k) over `mode`.
        effective_dimension_utilization: Effective dimension of the utilization.
        output_dimension: dim Ĥ, the dimension of the outputs' span.
        kappa_cka: κ, the distance of the features from minimal features.
        minimum_features: Whether κ < ε: true in the minimum-feature regime, false in the extended-feature regime.
        threshold: ε.
    """

    intensity: Annotated[Any, "mode"]
    effective_dimension: Annotated[Any, ""]
    effective_dimension_all_modes: Annotated[Any, ""]
    constant_overlap: Annotated[Any, ""]
    quality: Annotated[Any, "mode"]
    cumulative_quality: Annotated[Any, "mode"]
    effective_dimension_quality: Annotated[Any, ""]
    utilization: Annotated[Any, "mode"]
    cumulative_utilization: Annotated[Any, "mode"]
    effective_dimension_utilization: Annotated[Any, ""]
    output_dimension: Annotated[Any, ""]
    kappa_cka: Annotated[Any, ""]
    minimum_features: Annotated[Any, ""]
    threshold: Annotated[Any, ""]

    __repr__ = short_repr


@checked
def feature_metrics(
    features: Any,
    outputs: Any | None = None,
    targets: Any | None = None,
    *,
    held_out: FeatureMoments | tuple[Any, ...] | None = None,
    bias: bool = False,
    output_function: OutputFunction | None = None,
    exclude_first: bool = True,
    threshold: PositiveFloat = 0.1,
) -> FeatureMetrics:
    """Compute the intensity, quality and utilization of each feature, and the distance from minimal features.

    Let e_k and ρ_k be the eigenfeatures and intensities of the features on the samples, ⟨f|g⟩ = (1/n) Σ f(x_j) g(x_j),
    and P* and P̂ the orthogonal projectors on the spans H* of the targets and Ĥ of the outputs. Then

        Q*_k = ⟨e_k|P* e_k⟩ / (⟨e_k|e_k⟩ dim H*),   Q̂_k = ⟨e_k|P̂ e_k⟩ / (⟨e_k|e_k⟩ dim Ĥ),   Π(k) = Σ_{j≤k} Q_j.

    Held-out samples are used only for Q and Π, so Π can slightly exceed one; ρ, e_k and κ are always computed from the
    training samples. Classes are assumed to be balanced.

    Cost: from arrays, about 6 n p² operations and memory for 4np numbers (for n < p, with n and p exchanged). From
    moments, about 30 p³ operations and memory for 4p² numbers, after n p² operations to collect them. No n × n matrix
    is formed.

    Args:
        features: Φ, the inputs of the last layer, shape (n, p), as a NumPy, JAX or PyTorch array; or the
            `FeatureMoments` summed over batches. Moments yield the same results, but omit modes with √ρ_k below 5·10⁻⁷
            √ρ_1.
        outputs: f̂, the logits, shape (n, C). Omit them if `features` are moments.
        targets: f*, shape (n, c), or integer labels 0..C−1, shape (n,). Without targets, the quality is not computed.
        held_out: (features, outputs) or (features, outputs, targets) of held-out samples, or their moments.
        bias: Whether the last layer has a bias. The constant function is then one of the features and adds a mode. If
            this is False for a network with a bias, the utilization does not sum to one.
        output_function: "logits" (the default) to use the outputs unchanged, for networks trained on squared loss;
            "softmax" to use their softmax, for cross-entropy. For moments, choose it in `feature_moments` instead.
        exclude_first: Whether `effective_dimension` is one plus the effective dimension of all modes but the first,
            which is appropriate for features whose first mode is the constant function (check `constant_overlap`).
        threshold: ε; features with κ < ε are called minimal.

    Raises:
        InputError: If shapes do not match, values are not finite, n ≤ C, or features or outputs are the same on every
            sample; also if labels are outside 0..C−1 or given for a single output.

    Warns:
        UserWarning: If classes are not balanced (the largest has over 1.5 times the samples of the smallest), n < p, or
            utilizations of held-out samples sum to more than 1.01. No warning is given under JAX tracing.

    References:
        Y. Nam, DPhil thesis (2024), chapter 2.

    Example:
        >>> import numpy as np
        >>> h = np.array([[1, 0], [1, 1], [0, 2], [-1, 1], [2, -1]])
        >>> f = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [1, 0]])
        >>> found = feature_metrics(h, f, exclude_first=False)
        >>> found.utilization.round(6), round(float(found.kappa_cka), 6)
        (array([0.37037 , 0.366667]), 0.260742)
        >>> round(float(found.effective_dimension), 6), bool(found.minimum_features)
        (1.918909, False)
    """
    if isinstance(features, FeatureMoments):
        output_function = output_function or features.output_function
    rows = _rows(features, outputs, targets, output_function or "logits")
    check_samples(rows)
    _warn(rows)
    xp = array_namespace(rows.features)
    if held_out is None:
        overlaps = rows
    elif isinstance(held_out, FeatureMoments):
        overlaps = _rows(held_out, None, None, output_function or "logits")
    else:
        require(
            len(held_out) in (2, 3),
            f"held_out has length {len(held_out)}",
            argument="held_out",
            value=len(held_out),
            remedy="give (features, outputs) or (features, outputs, targets), or moments",
        )
        overlaps = sample_rows(held_out[0], held_out[1], (*held_out, None)[2], output_function or "logits")
    _check_same(rows, overlaps)
    with_bias, overlaps_with_bias = ((_with_constant(each) if bias else each) for each in (rows, overlaps))
    modes = row_modes(with_bias.features, rows.samples, rows.resolution)
    columns = modes.values if held_out is None else mode_columns(modes, overlaps_with_bias)
    overlap = xp.abs(xp.sum(columns[:, 0] * overlaps.constant[:, 0])) / overlaps.samples**0.5
    basis, _ = projection(rows.outputs, rows.resolution)
    kappa = row_kappa(rows, basis)
    quality = None
    if overlaps.targets is not None:
        quality = covered(columns, *projection(overlaps.targets, overlaps.resolution))
    span, output_dimension = projection(overlaps.outputs, overlaps.resolution)
    utilization = covered(columns, span, output_dimension)
    if held_out is not None:
        _warn_of_excess(xp.sum(utilization))
    return FeatureMetrics(
        intensity=modes.intensity,
        effective_dimension=effective_dimension(modes.intensity, exclude_first=exclude_first),
        effective_dimension_all_modes=effective_dimension(modes.intensity),
        constant_overlap=overlap,
        quality=quality,
        cumulative_quality=None if quality is None else xp.cumulative_sum(quality, axis=0),
        effective_dimension_quality=None if quality is None else effective_dimension(quality),
        utilization=utilization,
        cumulative_utilization=xp.cumulative_sum(utilization, axis=0),
        effective_dimension_utilization=effective_dimension(utilization),
        output_dimension=output_dimension,
        kappa_cka=kappa,
        minimum_features=kappa < threshold,
        threshold=xp.full_like(kappa, threshold),
    )


def _rows(features: Any, outputs: Any, targets: Any, output_function: OutputFunction) -> Rows:
    if isinstance(features, FeatureMoments):
        require(
            outputs is None and targets is None and output_function == features.output_function,
            "moments were given together with outputs, targets or another output_function",
            argument="output_function",
            value=output_function,
            remedy=f"give only the moments, which contain the targets and the outputs (as {features.output_function})",
        )
        return features.rows()
    require(
        outputs is not None,
        "features were given without outputs",
        argument="outputs",
        remedy="give the outputs of the network on the same samples",
    )
    return sample_rows(features, outputs, targets, output_function)


def _with_constant(rows: Rows) -> Rows:
    xp = array_namespace(rows.features)
    return rows._replace(features=xp.concat([rows.features, rows.constant], axis=1))


def _warn_of_excess(total: Any) -> None:
    """Warn if held-out utilizations sum to more than one, because the modes are not orthogonal on held-out samples."""
    if not holds(total <= 1 + _EXCESS):
        warnings.warn(
            f"Utilizations of the held-out samples sum to {float(total):.3g}, not to one, because modes that are "
            "orthogonal on the training samples overlap on the held-out samples; use more held-out samples.",
            stacklevel=3,
        )


def _check_same(rows: Rows, held_out: Rows) -> None:
    shapes = [(each.features.shape[1], each.outputs.shape[1]) for each in (rows, held_out)]
    require(
        shapes[0] == shapes[1],
        f"held_out has widths (features, outputs) {shapes[1]}, but the samples have widths {shapes[0]}",
        argument="held_out",
        value=shapes[1],
        remedy="measure the same network on both sets of samples",
    )


def _warn(rows: Rows) -> None:
    if rows.samples < rows.features.shape[1]:
        warnings.warn(
            f"There are {rows.samples} samples and {rows.features.shape[1]} features, so only one mode per sample "
            "can be measured.",
            stacklevel=3,
        )
    if rows.targets is None or rows.targets.shape[1] < 2:
        return
    xp = array_namespace(rows.targets)
    # Indicators of disjoint sets are orthogonal, and their squared norms equal their sums.
    products, counts = rows.targets.T @ rows.targets, (rows.targets.T @ rows.constant)[:, 0]
    powers = xp.linalg.diagonal(products)
    off = xp.sum(products**2) - xp.sum(powers**2) + xp.sum((powers - counts) ** 2)
    one_hot = off < 1e-12 * rows.samples**2
    if not holds(~(one_hot & (xp.max(counts) > _IMBALANCE * xp.min(counts)))):
        warnings.warn(
            f"The largest class has {float(xp.max(counts)):.0f} samples and the smallest {float(xp.min(counts)):.0f}, "
            "but κ and the quality treat classes as balanced.",
            stacklevel=3,
        )
