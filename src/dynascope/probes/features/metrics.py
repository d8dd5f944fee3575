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

_EXCESS = 0.01  # by which utilizations of held-out samples may sum to more than one, without a word
_IMBALANCE = 1.5  # largest class over the smallest, from which the balance that κ assumes is said to be missing


class FeatureMetrics(NamedTuple):
    """Metrics of the features of a network; over `mode`, the strongest is first and values beyond the rank are zero.

    Attributes:
        intensity: ρ_k over `mode`.
        effective_dimension: Of the intensity, by `exclude_first`.
        effective_dimension_all_modes: Of the intensity.
        constant_overlap: |⟨e_1|1⟩|/‖e_1‖.
        quality: Q*_k over `mode`; None without targets, as all that is made of it.
        cumulative_quality: Π*(k) over `mode`.
        effective_dimension_quality: Of the quality.
        utilization: Q̂_k over `mode`.
        cumulative_utilization: Π̂(k) over `mode`.
        effective_dimension_utilization: Of the utilization.
        output_dimension: dim Ĥ.
        kappa_cka: κ.
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
    """How strong, useful and used the features of a network are, and how far they are from a minimum.

    With the eigenfeatures e_k and intensities ρ_k of the features on the samples, ⟨f|g⟩ = (1/n) Σ f(x_j) g(x_j), and
    the orthogonal projectors on the spans of the targets f* and of the outputs f̂,

        Q*_k = ⟨e_k|P* e_k⟩ / (⟨e_k|e_k⟩ dim H*),   Q̂_k = ⟨e_k|P̂ e_k⟩ / (⟨e_k|e_k⟩ dim Ĥ),   Π(k) = Σ_{j≤k} Q_j.

    Held-out samples are used for these overlaps only, so that Π may pass one there by a little; ρ, e_k and κ are those
    of the samples. Classes are taken as balanced.

    Cost: about 6 n p² operations and memory for 4np numbers from arrays, with n < p the other way round; about 30 p³
    and 4p² from moments, after n p² to collect them. Never n × n.

    Args:
        features: Φ, the inputs of the last layer, shape (n, p), of NumPy, JAX or PyTorch; or the `FeatureMoments` of
            batches, which give the same numbers, except that modes with √ρ_k below 5·10⁻⁷ √ρ_1 are left out.
        outputs: f̂, shape (n, C): logits. Not with moments.
        targets: f*, shape (n, c), or labels 0..C−1 as whole numbers, shape (n,); without them there is no quality.
        held_out: (features, outputs) or (features, outputs, targets) of held-out samples, or their moments.
        bias: Whether the last layer has a bias: the constant function then belongs to the features, and a mode is
            added for it. Without it the utilization of a network with a bias does not sum to one.
        output_function: "logits" (the default) for the outputs as they are, as of networks trained on squared loss;
            "softmax" for their softmax, as of those trained on cross-entropy. That of moments was chosen before.
        exclude_first: Whether `effective_dimension` counts the first intensity as one mode and the others apart, for
            features whose first mode is the constant function; `constant_overlap` says whether it is.
        threshold: ε: features with κ < ε are called minimal.

    Raises:
        InputError: Shapes that do not fit, values that are not finite, labels outside 0..C−1 or for a single output,
            n ≤ C, or features or outputs that are the same on every sample.

    Warns:
        UserWarning: Classes are not balanced (the largest over 1.5 times the smallest), n < p, or utilizations of
            held-out samples sum to more than 1.01. Not while JAX traces.

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
            f"held_out has {len(held_out)} parts",
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
            "moments were given with outputs, targets or another output_function",
            argument="output_function",
            value=output_function,
            remedy=f"give the moments alone: they hold outputs, as {features.output_function}, and targets",
        )
        return features.rows()
    require(
        outputs is not None,
        "there are features and no outputs",
        argument="outputs",
        remedy="give the outputs of the network on the same samples",
    )
    return sample_rows(features, outputs, targets, output_function)


def _with_constant(rows: Rows) -> Rows:
    xp = array_namespace(rows.features)
    return rows._replace(features=xp.concat([rows.features, rows.constant], axis=1))


def _warn_of_excess(total: Any) -> None:
    """Modes that are orthogonal on some samples are not on others, and then count what they share twice."""
    if not holds(total <= 1 + _EXCESS):
        warnings.warn(
            f"Utilizations of the held-out samples sum to {float(total):.3g}, not to one: features overlap there that "
            "are orthogonal on the samples; hold out more.",
            stacklevel=3,
        )


def _check_same(rows: Rows, held_out: Rows) -> None:
    shapes = [(each.features.shape[1], each.outputs.shape[1]) for each in (rows, held_out)]
    require(
        shapes[0] == shapes[1],
        f"there are {shapes[0]} features and outputs, and {shapes[1]} of them held out",
        argument="held_out",
        value=shapes[1],
        remedy="measure one network on both",
    )


def _warn(rows: Rows) -> None:
    if rows.samples < rows.features.shape[1]:
        warnings.warn(
            f"There are {rows.samples} samples and {rows.features.shape[1]} features: modes beyond the samples are not "
            "seen.",
            stacklevel=3,
        )
    if rows.targets is None or rows.targets.shape[1] < 2:
        return
    xp = array_namespace(rows.targets)
    # Indicators of disjoint sets are orthogonal, and their powers are their sums.
    products, counts = rows.targets.T @ rows.targets, (rows.targets.T @ rows.constant)[:, 0]
    powers = xp.linalg.diagonal(products)
    off = xp.sum(products**2) - xp.sum(powers**2) + xp.sum((powers - counts) ** 2)
    one_hot = off < 1e-12 * rows.samples**2
    if not holds(~(one_hot & (xp.max(counts) > _IMBALANCE * xp.min(counts)))):
        warnings.warn(
            f"The largest class has {float(xp.max(counts)):.0f} samples and the smallest {float(xp.min(counts)):.0f}: "
            "κ and the quality take classes as balanced.",
            stacklevel=3,
        )
