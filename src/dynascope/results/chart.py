"""The declaration of a figure: its variables, axes and style.

Figure files and report pages are drawn from the same declaration, with the same colours and labels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from dynascope.errors import InputError
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import NonNegativeFloat

__all__ = ["Chart", "from_attributes", "to_attributes"]

Log = Literal["", "x", "y", "xy"]


@checked
@dataclasses.dataclass(frozen=True)
class Chart:
    """One figure: observations as solid lines or points, predictions as dashed lines.

    Attributes:
        variables: Names of the variables, each drawn from every record that contains it.
        over: The dimension of the x-axis, or another variable against which the variables are drawn as paths. If empty,
            the x-axis is the first of time, step and the other standard axes that the variable has.
        caption: The caption.
        title: The heading.
        log: Which axes are logarithmic: "", "x", "y" or "xy". A power law is straight on two logarithmic axes.
        members: The labels of the members to draw, by dimension.
        places: The positions of the members to draw, by dimension, counted from 0 at the start or from −1 at the end;
            for labels that are not known in advance. Positions beyond an end select the end.
        symbols: Symbol of a dimension in line labels: {"exponent": "α"} labels a line α = 0.3. With an empty symbol,
            the members share one colour and thin lines, for example for many neurons.
        interval: The variables with the lower and the upper end of an interval around the only drawn variable. The
            interval is a band, or error bars around points.
        error: The variable with the half-width of this interval, instead of `interval`.
        points: Draw observations as points.
        joined: Connect the points of a line across missing values; a dot marks each point between missing values.
        arrows: Draw an arrowhead at the end of observed paths.
        residual: Draw observed minus predicted values in a panel below, for curves that nearly coincide.
        decades: Number of decades below the largest value to draw; smaller values are omitted.
        staircase: Draw the predicted jumps as a numbered staircase under the observed loss.
        trained: Predicted variables that are measured in training, for example for calibration; drawn as observations.
        words: Label of each line, instead of its long name.
        x_label: Label of the x-axis, instead of long name and units.
        y_label: Label of the y-axis.

    Raises:
        InputError: There is no variable, or an option for one variable is used with several.

    Example:
        >>> Chart("loss", log="y").variables
        ('loss',)
    """

    variables: tuple[str, ...] | str
    over: str = "time"
    caption: str = ""
    title: str = ""
    log: Log = ""
    members: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)
    places: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    symbols: Mapping[str, str] = dataclasses.field(default_factory=dict)
    interval: tuple[str, str] | None = None
    error: str | None = None
    points: bool = False
    joined: bool = False
    arrows: bool = False
    residual: bool = False
    decades: NonNegativeFloat | None = None
    staircase: bool = False
    trained: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    x_label: str = ""
    y_label: str = ""

    def __post_init__(self):
        names = (self.variables,) if isinstance(self.variables, str) else tuple(self.variables)
        object.__setattr__(self, "variables", names)
        members = {name: (labels,) if isinstance(labels, str) else labels for name, labels in self.members.items()}
        object.__setattr__(self, "members", members)
        bounds = (self.interval is not None) + (self.error is not None)
        for valid, problem, argument, remedy in (
            (names, "no variables are given", "variables", "name the variables to draw"),
            (
                len(self.words) in (0, len(names)),
                f"words has length {len(self.words)}, but there are {len(names)} variables",
                "words",
                "give one label for each variable, or none",
            ),
            (
                bounds == 0 or (bounds == 1 and len(names) == 1),
                "both interval and error are given"
                if bounds == 2
                else f"an interval is given for {len(names)} variables",
                "interval",
                "give either interval or error, and only for a chart with one variable",
            ),
            (
                not self.staircase or names == ("loss",),
                f"a staircase of {', '.join(names)} is requested",
                "staircase",
                "draw 'loss' alone",
            ),
        ):
            require(valid, problem, argument=argument, value=getattr(self, argument), remedy=remedy)


def to_attributes(charts: Iterable[Chart]) -> list[dict[str, Any]]:
    """Convert charts to plain values, stored in the attribute `figures` of a tree.

    Example:
        >>> to_attributes([Chart("loss", over="step", log="xy")])
        [{'variables': ('loss',), 'over': 'step', 'log': 'xy'}]
    """
    empty = Chart("loss")
    return [
        {
            field.name: getattr(chart, field.name)
            for field in dataclasses.fields(chart)
            if field.name == "variables" or getattr(chart, field.name) != getattr(empty, field.name)
        }
        for chart in charts
    ]


def from_attributes(figures: Sequence[Mapping[str, Any]]) -> tuple[Chart, ...]:
    """Restore charts from the result of `to_attributes`.

    Raises:
        InputError: The values are not charts.

    Example:
        >>> chart = Chart("accuracy", members={"seed": (0, 1)}, interval=("low", "high"))
        >>> from_attributes(to_attributes([chart])) == (chart,)
        True
    """
    try:
        return tuple(Chart(**{name: _tuples(value) for name, value in each.items()}) for each in figures)
    except (AttributeError, TypeError) as error:
        raise InputError(
            f"figures is not a list of charts ({error})",
            argument="figures",
            value=str(figures)[:200],
            remedy="create the record again",
        ) from None


def _tuples(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _tuples(each) for name, each in value.items()}
    return tuple(value) if isinstance(value, list) else value
