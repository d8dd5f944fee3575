"""What every study is: a claim, the same quantities observed and predicted, and a verdict."""

from __future__ import annotations

import dataclasses
import operator
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, dataclass_transform, final

import jax
import numpy as np
import xarray as xr

from dynascope.comparison import compare
from dynascope.compilation import compile_cache
from dynascope.errors import no_member_lost
from dynascope.flows.gradient_flow import GradientFlow
from dynascope.prediction.observation import Probe, observe
from dynascope.protocols import Network
from dynascope.results import Chart, Comparison, Observation, Parameter, Prediction, name_all
from dynascope.studies import fields
from dynascope.studies.reference import Reference
from dynascope.studies.tolerances import with_limits
from dynascope.studies.values import Values, filled, values_record
from dynascope.validation import require

__all__ = ["Study"]

_Part = TypeVar("_Part")


@dataclass_transform(
    frozen_default=True,
    field_specifiers=(fields.parameter, dataclasses.field),
)
class Study:
    """A published claim, put to the test: its fields are its parameters.

    A subclass is a frozen dataclass without saying so; its fields are made by `parameter` and checked when it is
    made. It declares at import and computes nothing. It states `trained`, what is measured on training, and `exact`,
    what theory says; both are computed in double precision, and what has the same name is compared along `along`. A
    study that makes its records in another way, or compares more than two, overrides `observed`, `predicted` or
    `compared`, which take and return records. `observe`, `predict`, `compare` and `run` take and return results, and
    are not overridden.

    Attributes:
        name: What the command line calls it; by default the name of the class, in small letters with hyphens.
        reference: The paper and the claim.
        minutes: How long `run` takes on two cores, compilation included.
        tolerance: For each compared quantity, the error below which theory and experiment agree, and the reason for
            that number. Quantities that are not named keep the tolerance of their theory.
        checks: Names of the compared quantities that are identities, which hold of every run that has them.
        judged_claims: Names of the claims on which the observation reports and by which the verdict is decided.
        along: Dimension, or dimensions, along which curves are compared.
        title: The heading of its page; by default its name in words.
        question: What the study asks, in plain words.
        equation: The equation that its theory solves or states, as LaTeX.
        symbols: What a dimension is called beside lines, in all figures that do not say so themselves.
        tiny: Fields that make the study small enough to run in seconds, with the same claim.
        theory: What the record of the prediction calls the theory.
        task: What both records call the task, if not as `_task` calls itself. In this and in the words below fields,
            and what follows from them, are named in braces.
        notes: What both say of it besides, one sentence each.
        trains: What both call the network.
        flow: How networks are trained, where no flow says so in its record.
        recorded_fields: Names of fields that both say too.
        axes: Names of the axes of a variable that does not name its own.
        labelled: What labels an axis: labels, the name of the attribute that has them, or what makes them of the study.
        names: Long names and units of its own variables and axes, and of those that have another name here.
    """

    name: ClassVar[str]
    reference: ClassVar[Reference]
    minutes: ClassVar[float]
    tolerance: ClassVar[Mapping[str, tuple[float, str]]] = {}
    checks: ClassVar[tuple[str, ...]] = ()
    judged_claims: ClassVar[tuple[str, ...]] = ()
    along: ClassVar[str | tuple[str, ...]] = "time"
    title: ClassVar[str] = ""
    question: ClassVar[str] = ""
    equation: ClassVar[str] = ""
    symbols: ClassVar[Mapping[str, str]] = {}
    tiny: ClassVar[Mapping[str, Any]] = {}
    theory: ClassVar[str] = ""
    task: ClassVar[str] = ""
    notes: ClassVar[tuple[str, ...]] = ()
    trains: ClassVar[str] = ""
    flow: ClassVar[str] = ""
    recorded_fields: ClassVar[tuple[str, ...]] = ()
    axes: ClassVar[tuple[str, ...]] = ("time",)
    labelled: ClassVar[Mapping[str, Any]] = {}
    names: ClassVar[Mapping[str, tuple[str, str]]] = {}

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Any]]
        _task: ClassVar[Any]
        _times: ClassVar[Any]

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if "name" not in vars(cls) and "reference" in vars(cls):
            cls.name = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()
        dataclasses.dataclass(frozen=True)(cls)
        cls.__doc__ = fields.described(cls)

    def __post_init__(self):
        fields.check_fields(self)
        self.check()

    def check(self) -> None:
        """Check what concerns several fields.

        Raises:
            InputError: They do not fit together.
        """

    def require(self, holds: Any, field: str, remedy: str, *, beside: str = "", problem: str = "") -> None:
        """Refuse the value of a field unless something holds.

        Args:
            holds: What must hold.
            field: The field to be changed.
            remedy: What to do.
            beside: Another field that it does not go with.
            problem: What is wrong, if more than the values of these fields is to be said.

        Raises:
            InputError: It does not hold.
        """
        value = getattr(self, field)
        values = f"{field} is {value}" + (f", and {beside} is {getattr(self, beside)}" if beside else "")
        require(bool(holds), problem or values, argument=field, value=value, remedy=remedy)

    def trained(self) -> Values | xr.Dataset | Observation:
        """Train, and measure."""
        raise NotImplementedError

    def exact(self) -> Values:
        """What theory says."""
        return {}

    def observed(self) -> xr.Dataset:
        """The record of `trained`, computed in double precision."""
        with jax.enable_x64(True):
            found = self.trained()
            found = found.record if isinstance(found, Observation) else found
            return found if isinstance(found, xr.Dataset) else self.record(found)

    def predicted(self) -> xr.Dataset:
        """The record of `exact`, computed in double precision."""
        with jax.enable_x64(True):
            said: dict[str, Any] = {
                "theory": self.theory,
                "reference": self.reference.paper,
                **self.prediction_attributes(),
            }
            return self.record(self.exact(), **said)

    def compared(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """The comparison of two records; a study with more than two adds the others here."""
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
        )

    @final
    @compile_cache()
    @no_member_lost()
    def predict(self) -> Prediction:
        """Predict from theory, with the tolerances of the study."""
        return Prediction.of(name_all(self.judged(self.predicted()), self.names))

    @final
    @compile_cache()
    @no_member_lost()
    def observe(self) -> Observation:
        """Train and measure.

        Raises:
            DivergenceError: A run diverged, even if it is one of an ensemble.
        """
        return Observation.of(name_all(self.observed(), self.names))

    @final
    @compile_cache()
    @no_member_lost()
    def compare(self, observed: Observation, predicted: Prediction) -> Comparison:
        """Compare what `observe` and `predict` return; `with_page` adds the figures and the text of the page.

        Raises:
            InputError: The arguments have other types.
            DivergenceError: A further run that the comparison needs diverged.
        """
        for name, side, kind in (("observed", observed, Observation), ("predicted", predicted, Prediction)):
            found, remedy = type(side).__name__, "give what observe returns, and then what predict returns"
            require(isinstance(side, kind), f"{name} is a {found}", argument=name, value=found, remedy=remedy)
        return self.compared(observed.record, predicted.record)

    @final
    @compile_cache()
    def run(self) -> Comparison:
        """Predict, observe and compare; the prediction is made before there is anything to fit it to.

        Returns:
            The comparison, with the figures and the text of its page.

        Raises:
            DivergenceError: A run diverged, even if it is one of an ensemble.
        """
        predicted = self.predict()
        return self.with_page(self.compare(self.observe(), predicted))

    def with_page(self, result: Comparison) -> Comparison:
        """The result with title, claim, parameters and command, its figures with their captions, and what it means."""
        descriptions, shown = fields.descriptions(self), fields.stand_ins(self)
        parameters = {
            name: Parameter(value, descriptions.get(name, ""), shown.get(name, ""))
            for name, value in self.parameters().items()
        }
        charts = [dataclasses.replace(each, symbols=each.symbols or self.symbols) for each in self.figures(result)]
        return dataclasses.replace(
            result,
            study=self.name,
            title=self.title or self.name.replace("-", " ").capitalize(),
            question=self.question,
            equation=self.equation,
            claim=self.reference.claim,
            reference=f"{self.reference.paper} (arXiv {self.reference.arxiv})",
            parameters=parameters,
            provenance=dataclasses.replace(result.provenance, command=self.command),
            charts=tuple(charts),
            meaning=self.meaning(result),
        )

    def figures(self, result: Comparison, /) -> Sequence[Chart]:
        """The figures of the page, in order, with numbers of the result in their captions."""
        return ()

    def meaning(self, result: Comparison, /) -> str:
        """What the result means, in sentences that are true whatever the verdict."""
        return ""

    def judged(self, predicted: xr.Dataset) -> xr.Dataset:
        """The prediction with this study's tolerances attached."""
        return with_limits(predicted, self.tolerance)

    def parameters(self) -> dict[str, Any]:
        """The values of the fields, as the result shows them."""
        return dataclasses.asdict(self)

    def prediction_attributes(self) -> Values:
        """What the record of the prediction says besides its theory."""
        return {}

    def labels(self) -> Values:
        """Labels along axes by name, with times where they are known; an axis without any is numbered."""
        named = ({"time": "_times"} if hasattr(type(self), "_times") else {}) | dict(self.labelled)
        named = {axis: operator.attrgetter(of) if isinstance(of, str) else of for axis, of in named.items()}
        return {axis: of(self) if callable(of) else of for axis, of in named.items()}

    def about(self) -> Values:
        """What both records say of the task and the network, of a study that says what it `trains`."""
        if not self.trains:
            return {}
        said = {"task": filled(self.task, self)} if self.task else self._task.attributes()
        told = [*said.get("description", []), *(filled(each, self) for each in self.notes)]
        said |= {"network": filled(self.trains, self), "scale": getattr(self, "scale", 1.0)}
        if told:
            said["description"] = told
        return said | {name: getattr(self, name) for name in self.recorded_fields}

    def followed(self, networks: Network | Sequence[Network], *probes: Probe, **options: Any) -> xr.Dataset:
        """Networks, or one, trained on the task of the study by gradient flow and recorded at its times."""
        return observe(
            self._task,
            networks,
            method=GradientFlow(duration=self._times[-1], save=self._times, **options),
            probes=list(probes),
        ).record

    def part(self, kind: Callable[..., _Part], **others: Any) -> _Part:
        """What is made of the study's fields of the same names.

        Args:
            kind: A dataclass.
            **others: Its fields that the study has not, or has in another form.
        """
        names = {each.name for each in dataclasses.fields(cast(Any, kind))} - others.keys()
        return kind(**{name: getattr(self, name) for name in names}, **others)

    def record(self, values: Values, **attributes: Any) -> xr.Dataset:
        """The record of these values.

        Args:
            values: For each variable its values along `axes`, or the pair of the names of its axes and its values. What
                has the name of its only axis are labels, and come before those of `labels`.
            **attributes: What the record says besides what it is about.

        Raises:
            InputError: Values that do not fit their axes or the labels.
        """
        # A field may have the name of the hook; labels then come with the values.
        labels = self.labels() if callable(self.labels) else {}
        said = {"flow": filled(self.flow, self)} if self.flow else {}
        attributes = {**said, **self.about(), **attributes}
        return values_record(values, axes=self.axes, labels=labels, attributes=attributes, names=self.names)

    def run_record(
        self, run: xr.Dataset, values: Values, *, members: str | None = None, without: Sequence[str] = ()
    ) -> xr.Dataset:
        """The record of a run with further values.

        Args:
            run: What a flow returns.
            values: As `record` takes them.
            members: What the networks differ in, the axis that the flow calls `seed`.
            without: Statistics that `values` were made of, and that are left out.

        Raises:
            InputError: Values that do not fit their axes or the labels.
        """
        run = run.drop_vars(without)
        kept = {axis for variable in run.data_vars.values() for axis in variable.dims}
        run = run.drop_vars([name for name in run.coords if name not in kept])
        if members is not None:
            run = run.rename(seed=members).assign_coords({members: np.asarray(self.labels()[members])})
        return run.assign(self.record(values).drop_attrs())

    @property
    def command(self) -> str:
        """What runs the study once more: its name, and the fields that are not as usual."""
        usual = dataclasses.asdict(type(self)())
        words = ["dynascope run", self.name]
        for name, value in dataclasses.asdict(self).items():
            if value != usual[name]:
                each = value if isinstance(value, list | tuple) else [value]
                words.append(shlex.join([f"--{name.replace('_', '-')}", *map(str, each)]))
        return " ".join(words)
