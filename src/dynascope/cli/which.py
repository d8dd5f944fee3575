"""The command that says which theories cover one's own case, and by how much what they assume is violated."""

from __future__ import annotations

import dataclasses
import math
import shlex
from typing import TYPE_CHECKING, Any

# The face of a room loads what is behind it when it is used, so that help is there at once.
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
    from dynascope.prediction import Candidate

__all__ = ["Which"]


@with_bounds_in_help
@dataclasses.dataclass(frozen=True)
class Which:
    """Say which theories cover your data and network, and what stands in the way of the others.

    Args:
        data: What is learned.
        start: The network and its initial weights.
        learning_rate: Of gradient descent; gradient flow if not said.
        batch_size: Samples in a batch; all if not said.
        normalised: Ask about the homogeneity-normalised flow.
        context: Number of examples in a prompt, for attention.
        json: Print one JSON object.
    """

    data: UserData
    start: UserWeights = dataclasses.field(default_factory=UserWeights)
    learning_rate: PositiveFloat | None = None
    batch_size: PositiveInt | None = None
    normalised: bool = False
    context: float = 20.0
    json: bool = False

    def __call__(self) -> int:
        """Measure, and say it; returns the exit code."""
        check_options(self)
        with step(f"Reading {self.data.source}"):
            task = self.data.task(self.start.network, self.context)
        network, scale = self.start.network_on(task)
        scale = prediction.default_scale(network, normalised=self.normalised) if scale is None else scale
        found = prediction.which(
            task,
            network,
            scale=scale,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            normalised=self.normalised,
        )
        if self.json:
            asked = {"learning_rate": self.learning_rate, "batch_size": self.batch_size, "normalised": self.normalised}
            print_json(
                {
                    "task": task.name,
                    "network": self.start.network,
                    "scale": scale,
                    **asked,
                    "theories": [{**_row(each), "command": self._command(each.name)} for each in found],
                    "version": __version__,
                }
            )
            return AGREED
        article = "an" if self.start.network == "attention" else "a"
        print(f"What covers {article} {self.start.network} network on {task.name}, from weights of scale {scale:g}:\n")
        print(
            found.as_text(
                width=page_width(),
                command=lambda each: f"$ {self._command(each.name)}",
            )
        )
        return AGREED

    def _command(self, theory: str) -> str:
        """The command that predicts by it."""
        options = changed_options(self, without=("source", "seeds", "json"), always=("network",))
        words = ["dynascope", "predict", self.data.source, *option_words(options)]
        return shlex.join([*words, "--theory", theory])


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
