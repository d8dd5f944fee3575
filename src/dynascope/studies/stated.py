"""A study that states only its science: its fields check themselves, and its records are written for it."""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, dataclass_transform

import jax
import numpy as np
import xarray as xr

from dynascope.arguments import require
from dynascope.record import DIMENSIONS, make_record
from dynascope.studies import fields
from dynascope.studies.study import Study

__all__ = ["StatedStudy", "Values"]

#: What a study states of its variables: for each name its values along `axes`, or the names of its axes and the values.
Values = Mapping[str, Any]
_Part = TypeVar("_Part")
_FIRST = dict.fromkeys(("mode", "layer", "jump", "skill"), 1)  # what is counted from one


@dataclass_transform(
    frozen_default=True,
    field_specifiers=(
        *(fields.count, fields.positive, fields.number, fields.fraction, fields.numbers, fields.choice),
        *(fields.choices, fields.flag, fields.text, fields.checked, fields.seed, dataclasses.field),
        *(fields.initial_scale, fields.weakest),
    ),
)
class StatedStudy(Study):
    """What `CurvesStudy`, `StaircaseStudy` and `ClaimsStudy` share.

    A subclass is a frozen dataclass without saying so. Its fields come from `studies.fields`, and are checked when it
    is made.

    Attributes:
        name: What the command line calls it; by default the name of the class, in small letters with hyphens.
        theory: What the record of the prediction calls the theory.
        task: What both records call the task, if not as `_task` calls itself. In this and in the words below fields,
            and what follows from them, are named in braces.
        told: What both say of it besides, one sentence each.
        trains: What both call the network.
        flow: How networks are trained, where no flow says so in its record.
        says: Names of fields that both say too.
        axes: Names of the axes of a variable that does not name its own.
        labelled: What labels an axis: labels, the name of the attribute that has them, or what makes them of the study.
        names: Long name and units of variables and axes that are called otherwise here than elsewhere.
    """

    theory: ClassVar[str] = ""
    task: ClassVar[str] = ""
    told: ClassVar[tuple[str, ...]] = ()
    trains: ClassVar[str] = ""
    flow: ClassVar[str] = ""
    says: ClassVar[tuple[str, ...]] = ()
    axes: ClassVar[tuple[str, ...]] = ("time",)
    labelled: ClassVar[Mapping[str, Any]] = {}
    names: ClassVar[Mapping[str, tuple[str, str]]] = {}

    if TYPE_CHECKING:
        _task: Any
        _times: Any

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

    def labels(self) -> Values:
        """Labels along axes by name, with times where they are known; an axis without any is numbered."""
        named = ({"time": "_times"} if hasattr(type(self), "_times") else {}) | dict(self.labelled)
        named = {axis: operator.attrgetter(of) if isinstance(of, str) else of for axis, of in named.items()}
        return {axis: of(self) if callable(of) else of for axis, of in named.items()}

    def about(self) -> Values:
        """What both records say of the task and the network, of a study that says what it `trains`."""
        if not self.trains:
            return {}
        said = {"task": self._filled(self.task)} if self.task else self._task.attributes()
        told = [*said.get("description", []), *map(self._filled, self.told)]
        said |= {"network": self._filled(self.trains), "scale": getattr(self, "scale", 1.0)}
        return said | {name: getattr(self, name) for name in self.says} | ({"description": told} if told else {})

    def exact(self) -> Values:
        """What theory says."""
        return {}

    def said(self) -> Values:
        """What the record of the prediction says besides its theory."""
        return {}

    def predict(self) -> xr.Dataset:
        """The record of `exact`, computed in double precision."""
        with jax.enable_x64(True):
            said: dict[str, Any] = {"theory": self.theory, "reference": self.reference.paper, **self.said()}
            return self.record(self.exact(), **said)

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
        variables, coordinates, labels = {}, {}, dict(self.labels()) if callable(self.labels) else {}
        for name, given in values.items():
            named = isinstance(given, tuple) and len(given) == 2 and _names_axes(given[0])
            axes, array = given if named else (self.axes, given)
            array = np.asarray(jax.device_get(array))
            axes = (axes,) if isinstance(axes, str) else tuple(axes)
            if axes == (name,):
                labels[name] = array
            else:
                variables[name] = (axes, array)
        for axes, array in variables.values():
            for axis, length in zip(axes, array.shape, strict=False):
                numbers = np.arange(length) + _FIRST.get(axis, 0)
                coordinates.setdefault(axis, np.asarray(labels.get(axis, numbers)))
        names = {name: words for name, words in self.names.items() if name in variables or name in coordinates}
        # Claims and effects come with intervals of this confidence.
        said: dict[str, Any] = {"confidence": 0.95} if {"low", "high"} <= variables.keys() else {}
        said |= {"flow": self._filled(self.flow)} if self.flow else {}
        return make_record(variables, coordinates, attributes={**said, **self.about(), **attributes}, names=names)

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

    def _filled(self, words: str) -> str:
        return words.format_map(_Attributes(self))


class _Attributes:
    """What an object has, by name as in a mapping; lists of numbers as a sentence has them."""

    def __init__(self, of: Any):
        self.of = of

    def __getitem__(self, name: str) -> Any:
        value = getattr(self.of, name)
        numbers = isinstance(value, list | tuple) and all(isinstance(each, int | float) for each in value)
        return ", ".join(f"{each:g}" for each in value) if numbers else value


def _names_axes(names: Any) -> bool:
    each = (names,) if isinstance(names, str) else names
    return isinstance(each, tuple | list) and all(isinstance(name, str) and name in DIMENSIONS for name in each)
