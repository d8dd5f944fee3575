"""What every study is: a claim, the same quantities observed and predicted, and a verdict."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import xarray as xr

from dynascope.arguments import require
from dynascope.comparison import compare
from dynascope.comparison.limits import curve_tolerance, with_limits
from dynascope.compilation import compile_cache
from dynascope.errors import no_member_lost
from dynascope.plot import Chart, to_json
from dynascope.studies.fields import descriptions

__all__ = ["Chart", "Reference", "Study", "curve_tolerance", "points"]


@dataclasses.dataclass(frozen=True)
class Reference:
    """Where a claim was published.

    Attributes:
        paper: Authors and title.
        arxiv: arXiv identifier.
        claim: What the study puts to the test, in one sentence.
    """

    paper: str
    arxiv: str
    claim: str

    @classmethod
    def of(cls, work: str, claim: str, *, also: str = "") -> Reference:
        """A claim of a work that is cited as "authors, title (arXiv id)", and what else it is taken from."""
        paper, _, number = work.rstrip(")").partition(" (arXiv ")
        return cls(paper + also, number, claim)


@dataclasses.dataclass(frozen=True)
class Study:
    """A published claim, put to the test: its fields are its parameters.

    A study names a task, a network, a scale and a flow; the verbs do the work. It declares at import and computes
    nothing.

    Attributes:
        name: What the command line calls it.
        reference: The paper and the claim.
        minutes: How long `run` takes on two cores, compilation included.
        tolerance: For each compared quantity, the error below which theory and experiment agree, and the reason for
            that number. Quantities that are not named keep the tolerance of their theory.
        checks: Names of the compared quantities that are identities, which hold of every run that has them.
        judged_claims: Names of the claims on which the observation reports and by which the verdict is decided.
        along: Dimension, or dimensions, along which curves are compared.
        planes: Pairs of variables over time to be drawn against each other, (horizontal, vertical).
        title: The heading of its page; by default its name in words.
        question: What the study asks, in plain words.
        meaning: What the result means, in plain words that are true however it came out, with numbers of the result in
            braces (`plot.fill_caption`).
        figures: The figures that tell its result, in order.
        symbols: What a dimension is called beside lines, in all figures that do not say so themselves.
        tiny: Fields that make the study small enough to run in seconds, with the same claim.
    """

    name: ClassVar[str]
    reference: ClassVar[Reference]
    minutes: ClassVar[float]
    tolerance: ClassVar[Mapping[str, tuple[float, str]]] = {}
    checks: ClassVar[tuple[str, ...]] = ()
    judged_claims: ClassVar[tuple[str, ...]] = ()
    along: ClassVar[str | tuple[str, ...]] = "time"
    planes: ClassVar[tuple[tuple[str, str], ...]] = ()
    title: ClassVar[str] = ""
    question: ClassVar[str] = ""
    meaning: ClassVar[str] = ""
    figures: ClassVar[tuple[Chart, ...]] = ()
    symbols: ClassVar[Mapping[str, str]] = {}
    tiny: ClassVar[Mapping[str, Any]] = {}

    def observe(self) -> xr.Dataset:
        """Train and measure."""
        raise NotImplementedError

    def predict(self) -> xr.Dataset:
        """Ask the theory."""
        raise NotImplementedError

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> xr.DataTree:
        """Put both side by side; a study with more than one run adds the others here."""
        # A name that is none would leave an identity to be judged as a claim.
        unknown = sorted({*self.checks} - {*self.tolerance})
        require(
            not unknown, "a check has no tolerance", argument="checks", value=unknown, remedy="say how closely it holds"
        )
        return compare(
            observed,
            predicted,
            along=self.along,
            checks=[each for each in self.checks if each.removesuffix("_maximum") in predicted],
            claims=self.judged_claims,
            attributes=self.attributes(),
        )

    @compile_cache()
    def run(self) -> xr.DataTree:
        """Predict, observe and compare; the prediction is made before there is anything to fit it to.

        Returns:
            The tree with the groups `setup`, `observed`, `predicted` and `residual`, and the verdict in its attributes.

        Raises:
            DivergenceError: A run diverged, if only one of an ensemble: nothing is judged by those that are left.
        """
        with no_member_lost():
            predicted = self.judged(self.predict())
            return self.compare(self.observe(), predicted)

    def judged(self, predicted: xr.Dataset) -> xr.Dataset:
        """The prediction with this study's tolerances attached."""
        return with_limits(predicted, self.tolerance)

    def attributes(self) -> dict[str, Any]:
        """What the result says of the study it came from."""
        said = {
            "study": self.name,
            "title": self.title or self.name.replace("-", " ").capitalize(),
            "claim": self.reference.claim,
            "reference": f"{self.reference.paper} (arXiv {self.reference.arxiv})",
            "parameters": json.dumps(dataclasses.asdict(self)),
            "descriptions": json.dumps(descriptions(self), ensure_ascii=False),
            "planes": json.dumps(self.planes),
            "command": self._command,
        }
        said |= {name: getattr(self, name) for name in ("question", "meaning") if getattr(self, name)}
        if charts := tuple(self.charts()):
            usual = self.symbols
            said["figures"] = to_json(dataclasses.replace(each, symbols=each.symbols or usual) for each in charts)
        return said

    def charts(self) -> Iterable[Chart]:
        """The figures that tell this result; by default all that are declared."""
        return self.figures

    @property
    def _command(self) -> str:
        """What runs the study once more: its name, and the fields that are not as usual."""
        usual = dataclasses.asdict(type(self)())
        words = ["dynascope run", self.name]
        for name, value in dataclasses.asdict(self).items():
            if value != usual[name]:
                each = value if isinstance(value, list | tuple) else [value]
                words.append(shlex.join([f"--{name.replace('_', '-')}", *map(str, each)]))
        return " ".join(words)


def points(variables: tuple[str, ...] | str, over: str, caption: str = "", **options: Any) -> Chart:
    """A figure of what was observed at a few places, as points over what was predicted.

    Example:
        >>> points("reversal_time", "balance", log="x").points
        True
    """
    return Chart(variables, over, caption, points=True, **options)
