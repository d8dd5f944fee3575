"""Base class of studies: a published claim, the observed and predicted quantities, and a verdict."""

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
from dynascope.studies.memory import parts_in_memory
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
    """A test of a published claim; the fields of the study are its parameters.

    Subclasses become frozen dataclasses automatically. `parameter` declares their fields, and creating a study checks
    the values. Importing or creating a study computes nothing. A subclass implements `trained`, which trains and
    measures networks, and `exact`, which evaluates the theory. Both run in double precision, and quantities with the
    same name are compared along `along`. A study that builds its records differently, or that compares more than two of
    them, overrides `observed`, `predicted` or `compared`, which take and return records. Subclasses must not override
    `observe`, `predict`, `compare` and `run`, which take and return results.

    Attributes:
        name: Name on the command line; by default the class name in lower case with hyphens.
        reference: The paper and the claim.
        minutes: Duration of `run` on two cores, including compilation.
        tolerance: For each compared quantity, the largest error that counts as agreement, and the reason for this
            limit. Quantities without an entry keep the tolerance of their theory.
        checks: Names of the compared quantities that are exact identities and must agree in every run.
        deciding_claims: Names of the claims in the observed record that decide the verdict.
        along: Dimension or dimensions along which curves are compared.
        title: Heading of the page; by default the name of the study without hyphens.
        question: The question that the study answers, in plain language.
        equation: The governing equation, as LaTeX.
        symbols: Symbols of dimensions in line labels, for figures that do not set any.
        tiny: Field values with which the study tests the same claim within seconds.
        tiny_limits: Sentence that states the limitations of the study with the values of `tiny`; empty if there are
            none.
        theory: Name of the theory in the predicted record.
        task: Name of the task in both records, if it differs from the name of `_task`. `task`, `notes`, `trains` and
            `flow` may contain attributes of the study in braces, as in a format string.
        notes: Additional sentences about the task for both records.
        trains: Name of the network in both records.
        convention: Definition of the loss and of time in both records, if it differs from that of dynascope.
        flow: Name of the training method, if the records are not produced by a flow.
        recorded_fields: Names of fields to store in both records.
        axes: Names of the axes of variables that are given without axes.
        labelled: Labels of each axis: the labels themselves, the name of the attribute that contains them, or a
            function of the study.
        names: Long names and units of variables and axes, which extend or replace the standard ones.
        batched: Names of fields that may differ between studies that `trained_many` trains in one program.
    """

    name: ClassVar[str]
    reference: ClassVar[Reference]
    minutes: ClassVar[float]
    tolerance: ClassVar[Mapping[str, tuple[float, str]]] = {}
    checks: ClassVar[tuple[str, ...]] = ()
    deciding_claims: ClassVar[tuple[str, ...]] = ()
    along: ClassVar[str | tuple[str, ...]] = "time"
    title: ClassVar[str] = ""
    question: ClassVar[str] = ""
    equation: ClassVar[str] = ""
    symbols: ClassVar[Mapping[str, str]] = {}
    tiny: ClassVar[Mapping[str, Any]] = {}
    tiny_limits: ClassVar[str] = ""
    theory: ClassVar[str] = ""
    task: ClassVar[str] = ""
    notes: ClassVar[tuple[str, ...]] = ()
    trains: ClassVar[str] = ""
    convention: ClassVar[str] = ""
    flow: ClassVar[str] = ""
    recorded_fields: ClassVar[tuple[str, ...]] = ()
    axes: ClassVar[tuple[str, ...]] = ("time",)
    labelled: ClassVar[Mapping[str, Any]] = {}
    names: ClassVar[Mapping[str, tuple[str, str]]] = {}
    batched: ClassVar[tuple[str, ...]] = ()

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
        """Check conditions that involve several fields.

        Raises:
            InputError: The fields are inconsistent.
        """

    def require(self, holds: Any, field: str, remedy: str, *, beside: str = "", problem: str = "") -> None:
        """Reject the value of a field unless a condition holds.

        Args:
            holds: The condition.
            field: Name of the field that the user should change.
            remedy: Advice on how to change this field.
            beside: Name of another field that conflicts with this field.
            problem: Description of the problem; by default, the message states the values of these fields.

        Raises:
            InputError: The condition does not hold.
        """
        value = getattr(self, field)
        values = f"{field} is {value}" + (f", and {beside} is {getattr(self, beside)}" if beside else "")
        require(bool(holds), problem or values, argument=field, value=value, remedy=remedy)

    def trained(self) -> Values | xr.Dataset | Observation:
        """Train networks and measure them."""
        raise NotImplementedError

    def exact(self) -> Values:
        """Evaluate the theory."""
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
            attributes: dict[str, Any] = {
                "theory": self.theory,
                "reference": self.reference.paper,
                **self.prediction_attributes(),
            }
            return self.record(self.exact(), **attributes)

    def compared(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Compare the two records. A study with further records overrides this method to compare them as well."""
        # With a misspelt name, an identity would count as a claim.
        unknown = sorted({*self.checks} - {*self.tolerance})
        require(not unknown, f"checks {unknown} lack tolerances", argument="checks", value=unknown, remedy="add them")
        return compare(
            observed,
            predicted,
            along=self.along,
            checks=[each for each in self.checks if each.removesuffix("_maximum") in predicted],
            claims=self.deciding_claims,
        )

    @final
    @compile_cache()
    @no_member_lost()
    def predict(self) -> Prediction:
        """Predict from theory and attach the tolerances of the study."""
        return Prediction.of(name_all(self.with_tolerances(self.predicted()), self.names))

    @final
    @compile_cache()
    @no_member_lost()
    def observe(self) -> Observation:
        """Train and measure.

        Raises:
            DivergenceError: A run diverged, or one member of an ensemble did.
        """
        return Observation.of(name_all(self.observed(), self.names))

    @classmethod
    @final
    @compile_cache()
    @no_member_lost()
    def observe_many(cls, studies: Sequence[Any]) -> list[Observation]:
        """Train and measure for several studies that differ only in the fields of `batched`, in one program.

        The results are those of `observe`, up to the tolerance of the solver. Studies whose arrays would need more than
        a gibibyte are split into several parts.

        Raises:
            DivergenceError: A run diverged.
        """
        with jax.enable_x64(True):
            records = [each for part in parts_in_memory(studies, cls.memory) for each in cls.trained_many(part)]
        return [Observation.of(name_all(record, cls.names)) for record in records]

    @classmethod
    def trained_many(cls, studies: Sequence[Any]) -> list[xr.Dataset]:
        """Train the networks of several studies; a study with `batched` fields trains all of them in one program."""
        return [study.observed() for study in studies]

    @classmethod
    def memory(cls, studies: Sequence[Any]) -> float:
        """Bytes that `trained_many` needs for several studies; 0 if it limits its memory itself."""
        return 0

    @final
    @compile_cache()
    @no_member_lost()
    def compare(self, observed: Observation, predicted: Prediction) -> Comparison:
        """Compare an observation with a prediction. `with_page` adds the figures and the text of the page.

        Raises:
            InputError: An argument has the wrong type.
            DivergenceError: An additional run, trained for the comparison, diverged.
        """
        for name, side, kind in (("observed", observed, Observation), ("predicted", predicted, Prediction)):
            found, remedy = type(side).__name__, "pass the result of observe first and the result of predict second"
            require(isinstance(side, kind), f"{name} has type {found}", argument=name, value=found, remedy=remedy)
        return self.compared(observed.record, predicted.record)

    @final
    @compile_cache()
    def run(self) -> Comparison:
        """Predict, observe and compare. The prediction is computed first, so it cannot depend on the observation.

        Returns:
            The comparison, with the figures and the text of its page.

        Raises:
            DivergenceError: A run diverged, or one member of an ensemble did.
        """
        predicted = self.predict()
        return self.with_page(self.compare(self.observe(), predicted))

    def with_page(self, result: Comparison) -> Comparison:
        """Add the title, claim, parameters, command, figures and interpretation of the page to a result."""
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
        """The figures of the page, in order. Captions may quote numbers from the result."""
        return ()

    def meaning(self, result: Comparison, /) -> str:
        """The interpretation of the result, in sentences that hold for every verdict."""
        return ""

    def with_tolerances(self, predicted: xr.Dataset) -> xr.Dataset:
        """Attach the tolerances of the study to a prediction."""
        return with_limits(predicted, self.tolerance)

    def parameters(self) -> dict[str, Any]:
        """The values of the fields that are shown with the result."""
        return dataclasses.asdict(self)

    def prediction_attributes(self) -> Values:
        """Further attributes of the predicted record."""
        return {}

    def labels(self) -> Values:
        """Labels of each axis by its name, including the times if the study sets them; other entries are numbered."""
        named = ({"time": "_times"} if hasattr(type(self), "_times") else {}) | dict(self.labelled)
        named = {axis: operator.attrgetter(of) if isinstance(of, str) else of for axis, of in named.items()}
        return {axis: of(self) if callable(of) else of for axis, of in named.items()}

    def about(self) -> Values:
        """Attributes of both records that describe the task and the network; empty if `trains` is not set."""
        if not self.trains:
            return {}
        attributes = {"task": filled(self.task, self)} if self.task else self._task.attributes()
        description = [*attributes.get("description", []), *(filled(each, self) for each in self.notes)]
        attributes |= {"network": filled(self.trains, self), "scale": getattr(self, "scale", 1.0)}
        if description:
            attributes["description"] = description
        if self.convention:
            attributes["convention"] = self.convention
        return attributes | {name: getattr(self, name) for name in self.recorded_fields}

    def integrate(self, networks: Network | Sequence[Network], *probes: Probe, **options: Any) -> xr.Dataset:
        """Train one or several networks on the task by gradient flow, and record them at the times of the study."""
        return observe(
            self._task,
            networks,
            method=GradientFlow(duration=self._times[-1], save=self._times, **options),
            probes=list(probes),
        ).record

    def part(self, kind: Callable[..., _Part], **others: Any) -> _Part:
        """Create an instance of a dataclass from the fields of the study with the same names.

        Args:
            kind: The dataclass.
            **others: Values of fields that the study lacks, or that replace those of the study.
        """
        names = {each.name for each in dataclasses.fields(cast(Any, kind))} - others.keys()
        return kind(**{name: getattr(self, name) for name in names}, **others)

    def record(self, values: Values, **attributes: Any) -> xr.Dataset:
        """Create a record of the given values.

        Args:
            values: For each variable, its values along `axes`, or a pair of axis names and values. A variable with the
                name of its only axis contains labels, which take precedence over those of `labels`.
            **attributes: Attributes in addition to those of `about`.

        Raises:
            InputError: The values do not match their axes or labels.
        """
        # A field may be called `labels`, which hides the method; the values then contain the labels.
        labels = self.labels() if callable(self.labels) else {}
        flow = {"flow": filled(self.flow, self)} if self.flow else {}
        attributes = {**flow, **self.about(), **attributes}
        return values_record(values, axes=self.axes, labels=labels, attributes=attributes, names=self.names)

    def run_record(
        self, run: xr.Dataset, values: Values, *, members: str | None = None, without: Sequence[str] = ()
    ) -> xr.Dataset:
        """Add values to the record of a run.

        Args:
            run: The record that a flow returned.
            values: Values, as for `record`.
            members: New name of the axis `seed`, if the networks differ in something other than the seed.
            without: Statistics to drop, because `values` were computed from them.

        Raises:
            InputError: The values do not match their axes or labels.
        """
        run = run.drop_vars(without)
        kept = {axis for variable in run.data_vars.values() for axis in variable.dims}
        run = run.drop_vars([name for name in run.coords if name not in kept])
        if members is not None:
            run = run.rename(seed=members).assign_coords({members: np.asarray(self.labels()[members])})
        return run.assign(self.record(values).drop_attrs())

    @property
    def command(self) -> str:
        """The command that repeats this run, with all fields that differ from their defaults."""
        defaults = dataclasses.asdict(type(self)())
        words = ["dynascope run", self.name]
        for name, value in dataclasses.asdict(self).items():
            if value != defaults[name]:
                each = value if isinstance(value, list | tuple) else [value]
                words.append(shlex.join([f"--{name.replace('_', '-')}", *map(str, each)]))
        return " ".join(words)
