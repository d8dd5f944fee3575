"""A study that compares curves: what training measures with what a theory says it must be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import xarray as xr

from dynascope.comparison.limits import exact
from dynascope.observation import Probe, observe
from dynascope.protocols import Network
from dynascope.studies.stated import StatedStudy, Values

__all__ = ["CurvesStudy", "exact"]


class CurvesStudy(StatedStudy):
    """A study whose claim is that curves coincide.

    It states `trained`, what is measured on training, and `exact`, what the theory says; both are computed in double
    precision, and those of the same name are compared along `along`.
    """

    def trained(self) -> Values | xr.Dataset:
        """Train, and measure."""
        raise NotImplementedError

    def observe(self) -> xr.Dataset:
        """The record of `trained`."""
        with jax.enable_x64(True):
            found = self.trained()
            return found if isinstance(found, xr.Dataset) else self.record(found)

    def followed(self, networks: Network | Sequence[Network], *probes: Probe, **options: Any) -> xr.Dataset:
        """Networks, or one, trained on the task of the study by gradient flow and recorded at its times."""
        return observe(self._task, networks, duration=self._times[-1], save=self._times, probes=list(probes), **options)
