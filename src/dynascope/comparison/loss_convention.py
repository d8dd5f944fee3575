"""What losses are called by those who train, and what each is in terms of ours, L = ½ E‖f(x) − y‖²."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from dynascope.arguments import require

__all__ = ["LOSSES", "LossConvention", "LossName", "factor_of", "needed_facts", "ratio_names"]

LossName = Literal["mse", "half_mse", "squared_norm", "squared", "sum"]


class LossConvention(NamedTuple):
    """A convention of the squared loss.

    Attributes:
        formula: In words.
        half: What an entry of (f(x) − y)² is multiplied by, over the ½ of ours.
        over_samples: "mean" or "sum".
        over_outputs: The same.
    """

    formula: str
    half: int
    over_samples: Literal["mean", "sum"]
    over_outputs: Literal["mean", "sum"]


LOSSES: dict[LossName, LossConvention] = {
    "mse": LossConvention("mean of (f(x) − y)² over samples and outputs, as torch.nn.MSELoss", 2, "mean", "mean"),
    "half_mse": LossConvention("half the mean of (f(x) − y)² over samples and outputs", 1, "mean", "mean"),
    "squared_norm": LossConvention("E‖f(x) − y‖², mean over samples, sum over outputs", 2, "mean", "sum"),
    "squared": LossConvention("½ E‖f(x) − y‖², mean over samples, sum over outputs", 1, "mean", "sum"),
    "sum": LossConvention(
        "sum of (f(x) − y)² over samples and outputs, as torch.nn.MSELoss(reduction='sum')", 2, "sum", "sum"
    ),
}


def needed_facts(convention: LossConvention) -> set[str]:
    """What of a task its factor depends on.

    Example:
        >>> needed_facts(LOSSES["mse"]), needed_facts(LOSSES["squared"])
        ({'output_dimension'}, set())
    """
    needed = {"output_dimension": convention.over_outputs == "mean", "samples": convention.over_samples == "sum"}
    return {name for name, is_so in needed.items() if is_so}


def factor_of(loss: LossName, facts: Mapping[Any, Any]) -> float:
    """What L is to be multiplied by to give a loss, and the rate of its descent to give that of ours.

    Args:
        loss: Name of the convention.
        facts: Attributes of a prediction: the numbers of outputs and of samples, where the convention needs them.

    Raises:
        InputError: The prediction does not say how many outputs or samples there are.

    Example:
        >>> factor_of("mse", {"output_dimension": 3}), factor_of("squared", {})
        (0.6666666666666666, 1.0)
    """
    convention, factor = LOSSES[loss], float(LOSSES[loss].half)
    for name, power in (("output_dimension", -1), ("samples", 1)):
        if name in needed_facts(convention):
            require(
                name in facts,
                f"the prediction does not say its {name}, on which the convention {loss!r} depends",
                argument="loss",
                value=loss,
                remedy="give the losses as 'squared', ½ E‖f(x) − y‖²",
            )
            factor *= float(facts[name]) ** power
    return factor


def ratio_names(ratio: float, loss: LossName, facts: Mapping[Any, Any], tolerance: float) -> list[LossName]:
    """The conventions in which a loss that is too large by a ratio would be right.

    Example:
        >>> ratio_names(0.5, "squared_norm", {"output_dimension": 1, "samples": 9}, 0.02)
        ['half_mse', 'squared']
    """
    found = []
    for name, convention in LOSSES.items():
        if needed_facts(convention) <= facts.keys() and name != loss:
            expected = factor_of(name, facts) / factor_of(loss, facts)
            if abs(ratio / expected - 1) <= tolerance and abs(expected - 1) > tolerance:
                found.append(name)
    return found
