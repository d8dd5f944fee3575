"""The command that lists which theories apply to the user's case, with their measured assumptions."""

from __future__ import annotations

import dataclasses
import math
import shlex
import textwrap
from typing import TYPE_CHECKING, Any

# Rooms load their modules lazily, so that help appears immediately.
from dynascope import __version__, prediction
from dynascope.cli.exit_codes import AGREED
from dynascope.cli.option_values import changed_options, option_words
from dynascope.cli.options import check_options, with_bounds_in_help
from dynascope.cli.output import print_json
from dynascope.cli.progress import step
from dynascope.cli.user_data import UserData
from dynascope.cli.user_weights import UserWeights
from dynascope.cli.width import page_width
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

if TYPE_CHECKING:
    from dynascope.prediction import Candidate, Regime

__all__ = ["Which"]

_REGIME_SECONDS = 20.0  # time limit of training


@with_bounds_in_help
@dataclasses.dataclass(frozen=True)
class Which:
    """List the theories that apply to your data and network, and tell whether training is lazy or rich.

    Args:
        data: The data.
        model: The network and its initial weights.
        learning_rate: Learning rate of gradient descent; gradient flow by default.
        batch_size: Batch size; all samples by default.
        normalised: Assume the homogeneity-normalised flow.
        context: Number of examples in a prompt (attention only).
        json: Print one JSON object.
    """

    data: UserData
    model: UserWeights = dataclasses.field(default_factory=UserWeights)
    learning_rate: PositiveFloat | None = None
    batch_size: PositiveInt | None = None
    normalised: bool = False
    context: float = 20.0
    json: bool = False

    def __call__(self) -> int:
        """Measure the assumptions and print the theories; returns the exit code."""
        check_options(self)
        with step(f"Reading {self.data.source}"):
            task = self.data.task(self.model.network, self.context)
        network, scale = self.model.network_on(task)
        scale = prediction.default_scale(network, normalised=self.normalised) if scale is None else scale
        found = prediction.which(
            task,
            network,
            scale=scale,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            normalised=self.normalised,
        )
        answer = self._regime(task, network, scale)
        if self.json:
            options = {
                "learning_rate": self.learning_rate,
                "batch_size": self.batch_size,
                "normalised": self.normalised,
            }
            print_json(
                {
                    "task": task.name,
                    "network": self.model.network,
                    "scale": scale,
                    **options,
                    "theories": [{**_row(each), "command": self._command(each.name)} for each in found],
                    "regime": None if answer is None else _regime_row(answer),
                    "version": __version__,
                }
            )
            return AGREED
        article = "an" if self.model.network == "attention" else "a"
        print(f"Theories for {article} {self.model.network} network on {task.name}, at initial scale {scale:g}:\n")
        print(
            found.as_text(
                width=page_width(),
                command=lambda each: f"$ {self._command(each.name)}",
            )
        )
        if all(each.status == "no" for each in found):
            print(f"\nTo train and measure the network without a theory, use Python:\n\n{found.observing_text}")
        if answer is not None:
            print(f"\n{textwrap.fill(f'Lazy or rich? {answer}', page_width())}")
        return AGREED

    def _regime(self, task: Any, network: Any, scale: float) -> Regime | None:
        """Tell whether training is lazy or rich; None for training that `prediction.regime` does not cover."""
        if self.normalised or self.batch_size is not None:
            return None
        with step("Telling lazy from rich training"):
            return prediction.regime(
                task, network, scale=scale, learning_rate=self.learning_rate, seconds=_REGIME_SECONDS
            )

    def _command(self, theory: str) -> str:
        """Return the command that predicts with a theory."""
        options = changed_options(self, without=("source", "seeds", "json"), always=("network",))
        words = ["dynascope", "predict", self.data.source, *option_words(options)]
        return shlex.join([*words, "--theory", theory])


def _regime_row(answer: Regime) -> dict[str, Any]:
    row = dataclasses.asdict(answer)
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}


def _row(candidate: Candidate) -> dict[str, Any]:
    theory = candidate.theory
    return {
        "theory": candidate.name,
        "status": candidate.status,
        "exact": theory.exact,
        "kind": theory.kind,
        "gives": theory.gives,
        "more": theory.further,
        "network": theory.network,
        "reference": None if theory.domain is None else theory.domain.reference,
        "cost": candidate.cost,
        "error": candidate.error,
        "call": candidate.call,
        "assumptions": [
            {
                "name": each.assumption.name,
                "meaning": each.assumption.meaning,
                "measure": each.assumption.measure,
                "value": each.value,
                "limit": each.assumption.limit,
                "almost": each.assumption.almost if math.isfinite(each.assumption.almost) else None,
                "holds": each.holds,
                "almost_holds": each.almost,
                "growth": each.assumption.growth,
                "remedy": each.assumption.remedy,
            }
            for each in candidate.assumptions
        ],
    }
