"""The command that says which theories cover one's own case, and by how much what they assume is violated."""

from __future__ import annotations

import dataclasses
import math
import shlex
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

# The face of a room loads what is behind it when it is used, so that help is there at once.
from dynascope import prediction
from dynascope.cli.exit_codes import AGREED
from dynascope.cli.progress import step
from dynascope.cli.results import print_json
from dynascope.cli.user_data import UserData
from dynascope.cli.user_weights import UserWeights
from dynascope.cli.width import page_width

if TYPE_CHECKING:
    from dynascope.prediction import Candidate, Measured

__all__ = ["Which"]

_HEADS = {
    "applies": "These apply",
    "almost": "These almost apply: what they say is off by about as much as told",
    "no": "These do not apply",
}


@dataclasses.dataclass(frozen=True)
class Which(UserWeights, UserData):
    """Say which theories cover your data and network, and what stands in the way of the others.

    Args:
        learning_rate: Of gradient descent; gradient flow if not said.
        batch_size: Samples in a batch; all if not said.
        normalised: Ask about the homogeneity-normalised flow.
        context: Number of examples in a prompt, for attention.
        json: Print one JSON object.
    """

    learning_rate: float | None = None
    batch_size: int | None = None
    normalised: bool = False
    context: float = 20.0
    json: bool = False

    def __call__(self) -> int:
        """Measure, and say it; returns the exit code."""
        with step(f"Reading {self.data}"):
            task = self.task(self.network, self.context)
        network, scale = self.start(task)
        scale = self.usual_scale(network, self.normalised) if scale is None else scale
        found = prediction.which(
            task,
            network,
            scale=scale,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            normalised=self.normalised,
        )
        if self.json:
            print_json({"task": task.name, "network": self.network, "scale": scale, "theories": list(map(_row, found))})
            return AGREED
        print(f"What covers a {self.network} network on {task.name}, from weights of scale {scale:g}:\n")
        for each in found[0].training:
            if not each.holds:
                print("\n".join(_violated(each, "! of all, ")), end="\n\n")
        for status, head in _HEADS.items():
            group = [candidate for candidate in found if candidate.status == status]
            if group:
                print(f"{head}:\n")
                for candidate in group:
                    print("\n".join(self._told(candidate)), end="\n\n")
        return AGREED

    def _told(self, candidate: Candidate) -> Iterator[str]:
        theory = candidate.theory
        yield from _lines(f"{candidate.name} ({theory.kind}; estimated time: {candidate.cost})", "  ")
        yield from _lines(f"gives {theory.gives}", "    ")
        if theory.domain is not None:
            yield from _lines(f"source {theory.domain.reference}", "    ")
        for each in candidate.violated:
            if each not in candidate.training:
                yield from _violated(each, "    ! ")
        for each in candidate.assumptions:
            if each.value is None:
                yield from _lines(f"not measured here: {each.assumption.name}", "    ? ")
        if candidate.status != "no":
            yield from _lines(self._command(candidate.name), "    $ ")
            yield from _lines(candidate.call, "    > ")

    def _command(self, theory: str) -> str:
        """The command that predicts by it."""
        ours = {field.name for field in dataclasses.fields(UserWeights)} | {
            field.name for field in dataclasses.fields(UserData)
        }
        words = ["dynascope", "predict", self.data]
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name not in ours - {"data"} or (value == field.default and field.name != "network"):
                continue
            given = value if isinstance(value, tuple) else () if isinstance(value, bool) else (value,)
            words += [f"--{'no-' if value is False else ''}{field.name.replace('_', '-')}", *map(str, given)]
        return shlex.join([*words, "--theory", theory])


def _violated(measured: Measured, indent: str) -> Iterator[str]:
    """What is assumed, how far the case is from it, what that does, and what to do about it."""
    assumption = measured.assumption
    yield from _lines(
        f"{assumption.name}: {measured.value:.3g}, where {assumption.limit:g} is assumed ({assumption.measure}); "
        f"{assumption.growth}",
        indent,
    )
    yield from _lines(f"remedy: {assumption.remedy}", " " * len(indent))


def _lines(text: str, indent: str) -> list[str]:
    later = " " * len(indent)
    return textwrap.wrap(
        text,
        page_width(),
        initial_indent=indent,
        subsequent_indent=later + ("  " if indent == "  " else ""),
        break_long_words=False,
    )


def _row(candidate: Candidate) -> dict[str, Any]:
    theory = candidate.theory
    return {
        "theory": candidate.name,
        "status": candidate.status,
        "exact": theory.exact,
        "gives": theory.gives,
        "network": theory.network,
        "reference": None if theory.domain is None else theory.domain.reference,
        "cost": candidate.cost,
        "call": candidate.call,
        "assumptions": [
            {
                "name": each.assumption.name,
                "measure": each.assumption.measure,
                "value": each.value,
                "limit": each.assumption.limit,
                "almost": each.assumption.almost if math.isfinite(each.assumption.almost) else None,
                "holds": each.holds,
                "growth": each.assumption.growth,
                "remedy": each.assumption.remedy,
            }
            for each in candidate.assumptions
        ],
    }
