"""Claims about the order of the distances over the overall and the relative scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dynascope.comparison import Claim, claim_on_mean

__all__ = ["DECIDING", "regime_claims"]

DECIDING = ("lazy_kernel", "lazy_patterns", "rapid_patterns", "rapid_parameters", "kernel_understates")
_ALIGNED = 0.9
_LEARNED = 0.2  # final loss, in units of the mean squared target, below which a student has learned


def regime_claims(found: Mapping[str, np.ndarray], middle: int) -> list[Claim]:
    """Evaluate the claims. Each value is the mean over seeds of the natural logarithm of a ratio.

    Args:
        found: `loss` and the distances, shape (overall scales, relative scales, seeds), both scales increasing;
            `target_power` = E y², shape (seeds,); and `teacher_alignment` in the rich and the lazy corner of the plane,
            shape (2, times).
        middle: Position of the intermediate overall scale.
    """
    kernel, patterns, parameters = (
        np.log(np.maximum(found[f"{name}_distance"], np.finfo(float).tiny))
        for name in ("kernel", "hamming", "parameter")
    )
    lazy = [each[-1].max(axis=0) - each[0].min(axis=0) for each in (kernel, patterns)]
    ratios = {name: each[:, -1] - each[:, 0] for name, each in (("K", kernel), ("H", patterns), ("P", parameters))}
    learned = bool((found["loss"][[0, -1]] < _LEARNED * found["target_power"]).all())
    claims = [
        _below(
            "lazy_kernel",
            "At the largest overall scale, the kernel distance at every relative scale is smaller than at the smallest "
            "overall scale.",
            lazy[0],
        ),
        _below(
            "lazy_patterns",
            "At the largest overall scale, the Hamming distance at every relative scale is smaller than at the "
            "smallest overall scale.",
            lazy[1],
        ),
        _above(
            "rapid_patterns",
            "At the smallest overall scale, the Hamming distance is larger for upstream than for downstream students.",
            ratios["H"][0],
        ),
        _below(
            "rapid_parameters",
            "At the smallest overall scale, the parameter distance is smaller for upstream than for downstream "
            "students.",
            ratios["P"][0],
        ),
        _above(
            "kernel_understates",
            "At the intermediate overall scale, the ratio of the upstream to the downstream Hamming distance is larger "
            "than that of the kernel distances.",
            ratios["H"][middle] - ratios["K"][middle],
        ),
        _below(
            "kernel_smaller_upstream",
            "At the intermediate overall scale, the kernel distance is smaller for upstream than for downstream "
            "students.",
            ratios["K"][middle],
        ),
        _above(
            "patterns_larger_upstream",
            "At the intermediate overall scale, the Hamming distance is larger for upstream than for downstream "
            "students.",
            ratios["H"][middle],
        ),
        Claim(
            "teacher_rays",
            "In the plane, the neurons of the student in the rich corner turn to the teacher's neurons: their mean "
            f"cosine is at least {_ALIGNED:g} after training.",
            float(found["teacher_alignment"][0, -1]),
            least=_ALIGNED,
        ),
    ]
    return [each.if_known(learned, "a student at an extreme overall scale did not learn") for each in claims]


def _above(name: str, statement: str, values: Sequence[float] | np.ndarray) -> Claim:
    return claim_on_mean(name, f"{statement} The value is the logarithm of the ratio.", values, least=0.0)


def _below(name: str, statement: str, values: Sequence[float] | np.ndarray) -> Claim:
    return claim_on_mean(name, f"{statement} The value is the logarithm of the ratio.", values, most=0.0)
