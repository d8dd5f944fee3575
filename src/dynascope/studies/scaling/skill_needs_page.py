"""Figures and text shared by the pages of `emergence-data` and `emergence-parameters`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

__all__ = ["claim_chart", "half_amounts", "half_chart", "strength_chart"]


def strength_chart(resource: str, caption: str, **options: Any) -> Chart:
    """A chart of the strength of every skill over a resource, with its forecast."""
    named = {"title": f"Strength of the skills against the number of {resource}", "error": "strength_error"}
    return Chart("strength", resource, caption, points=True, **named, **options)


def half_chart(resource: str, result: Comparison, **options: Any) -> Chart:
    """A chart of the amount of a resource at which half of each skill is learned, with its forecast."""
    ratio = result.observed[f"half_{resource}_ratio"]
    ends = " to ".join(dict.fromkeys((rounded(ratio.min()), rounded(ratio.max()))))
    needed = f"{ends} times the forecast number of {resource}"
    found = f"Networks needed {needed}." if np.isfinite(ratio).all() else "Some skills did not reach half strength."
    caption = f"Number of {resource} at which each skill reaches half strength, and the forecast (dashed). {found}"
    return Chart(f"half_{resource}", "skill", caption, points=True, title=f"Required {resource}", **options)


def claim_chart() -> Chart:
    """A chart of the claims with their confidence intervals."""
    return Chart(
        "change",
        "hypothesis",
        "Values of the claims with 95 % confidence intervals over independent runs. The verdict rests on the claim "
        "“forecast”. At the midpoint between the forecasts for two neighbouring skills, the earlier skill must be "
        "above half strength and the later skill below. The value of the claim is the smallest margin by which these "
        "conditions hold; the claim holds if the value is positive. The values of the other claims are measured minus "
        "forecast strengths.",
        interval=("low", "high"),
        title="Claims about the forecast",
        y_label="difference of strengths",
        points=True,
    )


def half_amounts(result: Comparison, resource: str, trained: list[int]) -> str:
    """Describe the measured and forecast amounts for the first and last skills, as a clause.

    Args:
        result: The comparison.
        resource: Name of the resource.
        trained: The trained amounts, increasing.
    """
    measured, forecast = (side[f"half_{resource}"] for side in (result.observed, result.predicted))
    return ", and ".join(
        f"skill {end + 1} needs {_amount(float(measured[end]), trained)} {resource} to reach half strength "
        f"(forecast: {rounded(forecast[end])})"
        for end in dict.fromkeys((0, measured.size - 1))
    )


def _amount(value: float, trained: list[int]) -> str:
    if np.isinf(value):
        return f"more than {trained[-1]}"
    return f"at most {trained[0]}" if value <= trained[0] else rounded(value)
