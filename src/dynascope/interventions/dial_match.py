"""Settings of an optimiser that match a rescaled training problem, and the regime of the rescaled run."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Literal

from dynascope.theory.regimes import OptimizerSettings, matched_settings
from dynascope.validation import require

__all__ = ["DialMatch", "layer_factors", "match_dial", "require_target_scale"]

_ROUNDING = 1e-12  # relative difference from one of an effective output scale that counts as one


@dataclasses.dataclass(frozen=True, eq=False)
class DialMatch:
    """Matched settings of an optimiser, and the regime of the rescaled run.

    Attributes:
        output_scale: α, the effective output scale; training is lazier for α > 1 and richer for α < 1.
        regime: "twin" if α = 1, otherwise "lazier" or "richer".
        settings: Matched settings of each weight array, by its path in the network.
        clock: Speed of the run under SGD if its learning rate is not matched, relative to the matched run, for small
            learning rates; None if the arrays have different rates, or for Adam.
        clip_norm: Matched threshold of the global gradient norm; None without clipping.
        broken_by: Parts of training that have no exact match.
        summary: One sentence about the regime.
    """

    output_scale: float
    regime: Literal["twin", "lazier", "richer"]
    settings: dict[str, OptimizerSettings]
    clock: float | None
    clip_norm: float | None
    broken_by: tuple[str, ...]
    summary: str


def match_dial(
    settings: OptimizerSettings,
    factors: Mapping[str, float],
    alpha: float,
    *,
    target_scale: float,
    clip_norm: float | None,
    inexact_clipping: str = "",
) -> DialMatch:
    """Match the settings of a run whose arrays are scaled by factors.

    Args:
        settings: Settings of the given run.
        factors: Factor on the initial values of each array, by its path.
        alpha: Effective output scale α.
        target_scale: Factor T on the targets.
        clip_norm: Threshold of the global gradient norm of the given run, or None.
        inexact_clipping: Reason why clipping at another threshold is not exact; empty if it is.
    """
    squared_loss = alpha * alpha * target_scale * target_scale
    require(
        0 < squared_loss < math.inf,
        f"the effective output scale is {alpha:g}, whose square underflows or overflows",
        argument="output_scale",
        value=alpha,
        remedy="choose scales closer to 1",
    )
    matched = {
        path: matched_settings(settings, scale=1 / scale, loss_factor=squared_loss) for path, scale in factors.items()
    }
    equal = len(set(factors.values())) == 1
    first = next(iter(factors))
    clock = settings.learning_rate / matched[first].learning_rate if equal and settings.optimizer == "sgd" else None
    threshold = clip_norm if clip_norm is None or not equal else clip_norm * squared_loss / factors[first]
    broken = () if equal or clip_norm is None else ("clipping of the global norm, because the arrays differ in scale",)
    if inexact_clipping and threshold != clip_norm:
        broken = (inexact_clipping,)
    regime = "twin" if abs(alpha - 1) <= _ROUNDING else "lazier" if alpha > 1 else "richer"
    return DialMatch(alpha, regime, matched, clock, threshold, broken, _summary(regime, alpha, clock, broken))


def require_target_scale(target_scale: float, loss: str) -> None:
    """Raise `InputError` if the targets are scaled under cross-entropy."""
    require(
        loss == "squared" or target_scale == 1,
        f"target_scale is {target_scale:g}, but the targets of cross-entropy are classes",
        argument="target_scale",
        value=target_scale,
        remedy="use output_scale, the inverse temperature of the outputs, or squared loss",
    )


def layer_factors(layers: int, init_scale: float, layer_scales: Sequence[float] | None) -> tuple[float, ...]:
    """Return the factor on the initial weights of each layer."""
    given = (1.0,) * layers if layer_scales is None else tuple(layer_scales)
    require(
        len(given) == layers,
        f"layer_scales has {len(given)} factors, but the network has {layers} layers",
        argument="layer_scales",
        value=len(given),
        remedy=f"give {layers} factors",
    )
    return tuple(init_scale * each for each in given)


def _summary(regime: str, alpha: float, clock: float | None, broken: tuple[str, ...]) -> str:
    kind = "approximate" if broken else "exact"
    if regime == "twin":
        sentence = f"With the matched settings, the run is an {kind} twin of the given run"
    else:
        factor = alpha if alpha > 1 else 1 / alpha
        sentence = f"With the matched settings, the run is {regime} than the given run by the factor {factor:.4g}"
        sentence += f", an {kind} twin of the run whose outputs are multiplied by {alpha:.4g}"
    if broken:
        sentence += f" (not exact: {'; '.join(broken)})"
    if clock is not None and abs(clock - 1) > _ROUNDING:
        sentence += f"; with the given learning rate, its clock runs at {clock:.4g} times the speed"
    return f"{sentence}."
