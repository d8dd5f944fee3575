"""A study that compares curves: what training measures with what a theory says it must be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import xarray as xr

from dynascope.studies.stated import StatedStudy, Values

__all__ = ["CurvesStudy", "exact"]

EXACT = "the theory is exact, and the solver keeps each step within 1e-10"


class CurvesStudy(StatedStudy):
    """A study whose claim is that curves coincide.

    It states `trained`, what is measured on training, and `exact`, what the theory says; both are computed in double
    precision, and those of the same name are compared along `along`.
    """

    def trained(self) -> Values | xr.Dataset:
        """Train, and measure."""
        raise NotImplementedError

    def exact(self) -> Values:
        """Ask the theory."""
        raise NotImplementedError

    def said(self) -> Mapping[str, Any]:
        """What the record of the prediction says besides its theory."""
        return {}

    def observe(self) -> xr.Dataset:
        """The record of `trained`."""
        with jax.enable_x64(True):
            found = self.trained()
            return found if isinstance(found, xr.Dataset) else self.record(found)

    def predict(self) -> xr.Dataset:
        """The record of `exact`."""
        with jax.enable_x64(True):
            said: dict[str, Any] = {"theory": self.theory, "reference": self.reference.paper, **self.said()}
            return self.record(self.exact(), **said)


def exact(*names: str, error: float = 1e-6, reason: str = EXACT) -> dict[str, tuple[float, str]]:
    """Tolerances of curves that a theory gives exactly, as a whole and at their worst place.

    Args:
        *names: The curves.
        error: The error below which both agree.
        reason: Why that number.

    Example:
        >>> list(exact("loss"))
        ['loss', 'loss_maximum']
    """
    return {name + end: (error, reason) for name in names for end in ("", "_maximum")}
