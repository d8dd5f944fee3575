"""Figures and text of the study `emergence-time`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.scaling.emergence_time.study import EmergenceTime

__all__ = ["figures", "meaning"]


def figures(study: EmergenceTime, result: Comparison) -> list[Chart]:
    """The figures: strengths, half-strength steps and calibration."""
    seeds = study.setting.seeds
    return [
        Chart(
            "strength",
            "step",
            f"Strength of each skill over training, one thin line for each of {seeds} networks. Dashed curves show the "
            "forecast from the skill frequencies and a calibration on separate networks trained on a single skill.",
            log="x",
            title="Strength of the skills during training",
        ),
        Chart(
            "half_strength_step",
            "skill",
            f"Step at which each skill reaches half strength: mean and standard deviation of {seeds} networks, and the "
            f"forecast (dashed). The mean step is {_half_steps(result)}.",
            log="y",
            error="half_strength_step_spread",
            title="Half-strength step of each skill",
            points=True,
        ),
        Chart(
            ("calibration_strength", "calibrated_strength"),
            "time",
            "Strength of the skill in networks trained on a single skill, against training time, and the "
            "logistic curve fitted to the mean strength between 0.05 and 0.6. "
            "The calibration uses no values outside this range.",
            trained=("calibration_strength",),
            words=("networks", "fitted logistic curve"),
            title="Calibration on one skill",
            y_label="strength of the skill (1: learned)",
        ),
    ]


def meaning(study: EmergenceTime, result: Comparison) -> str:
    """Explain how sudden learning can be forecast, with the first and last half-strength steps."""
    setting = study.setting
    return (
        f"Two-layer networks of {setting.width} neurons learn {setting.skills} skills of decreasing frequency at once; "
        f"each skill is the parity of {setting.relevant_bits} input bits. A skill shows almost no progress for a long "
        "time and is then learned quickly. From the skill frequencies and two constants that are calibrated on "
        "networks trained on a single skill, theory forecasts the step at which every skill reaches half strength. In "
        f"training, the mean step is {_half_steps(result)}. The forecast assumes wide networks: in narrow networks, "
        "skills learned early delay later ones, which the theory neglects."
    )


def _half_steps(result: Comparison) -> str:
    """Describe the measured and forecast half-strength steps of the first and last skills, as part of a sentence."""
    measured, forecast = (side["half_strength_step"] for side in (result.observed, result.predicted))
    ends = dict.fromkeys((0, measured.size - 1))
    steps = [f"{rounded(measured[end])} for skill {end + 1} (forecast: {rounded(forecast[end])})" for end in ends]
    unreached = "" if np.isfinite(measured).all() else " (∞: not every network reaches half strength)"
    return " and ".join(steps) + unreached
