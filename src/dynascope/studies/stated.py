"""A study that states only its science: its fields check themselves, and its records are written for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

import jax
import numpy as np
import xarray as xr

from dynascope.arguments import require
from dynascope.record import DIMENSIONS, make_record
from dynascope.studies import fields
from dynascope.studies.study import Study

__all__ = ["StatedStudy", "Values"]

Values = Mapping[str, Any]  # name → values along the axes of the study, or (names of the axes, values)
_FIRST = {"mode": 1, "layer": 1, "jump": 1}  # what is counted from one


@dataclass_transform(
    frozen_default=True,
    field_specifiers=(
        *(fields.count, fields.positive, fields.number, fields.fraction, fields.numbers, fields.choice),
        *(fields.choices, fields.flag, fields.text, fields.checked, fields.seed, dataclasses.field),
    ),
)
class StatedStudy(Study):
    """What `CurvesStudy`, `StaircaseStudy` and `ClaimsStudy` share.

    A subclass is a frozen dataclass without saying so. Its fields come from `studies.fields`, and are checked when it
    is made.

    Attributes:
        theory: What the record of the prediction calls the theory.
        trains: What both records call the network.
        axes: Names of the axes of a variable that does not name its own.
        names: Long name and units of variables and axes that are called otherwise here than elsewhere.
    """

    theory: ClassVar[str] = ""
    trains: ClassVar[str] = ""
    axes: ClassVar[tuple[str, ...]] = ("time",)
    names: ClassVar[Mapping[str, tuple[str, str]]] = {}

    if TYPE_CHECKING:
        _task: Any

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
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

    def require(self, holds: Any, field: str, remedy: str, *, problem: str = "") -> None:
        """Refuse the value of a field unless something holds; the problem is the value itself if nothing else is said.

        Raises:
            InputError: It does not hold.
        """
        value = getattr(self, field)
        require(bool(holds), problem or f"{field} is {value}", argument=field, value=value, remedy=remedy)

    def labels(self) -> Mapping[str, Any]:
        """Labels along axes by name; an axis without any is numbered."""
        return {}

    def about(self) -> Mapping[str, Any]:
        """What both records say of the task and the network; of a study that `trains` one, what its `_task` says."""
        scale = getattr(self, "scale", 1.0)
        return {"network": self.trains, "scale": scale, **self._task.attributes()} if self.trains else {}

    def exact(self) -> Values:
        """What theory says."""
        return {}

    def said(self) -> Mapping[str, Any]:
        """What the record of the prediction says besides its theory."""
        return {}

    def predict(self) -> xr.Dataset:
        """The record of `exact`, computed in double precision."""
        with jax.enable_x64(True):
            said: dict[str, Any] = {"theory": self.theory, "reference": self.reference.paper, **self.said()}
            return self.record(self.exact(), **said)

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
        return make_record(variables, coordinates, attributes={**self.about(), **attributes}, names=names)

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


def _names_axes(names: Any) -> bool:
    each = (names,) if isinstance(names, str) else names
    return isinstance(each, tuple | list) and all(isinstance(name, str) and name in DIMENSIONS for name in each)
