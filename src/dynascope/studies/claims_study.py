"""Base class of studies that test claims about numbers, counts or effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import xarray as xr

from dynascope.comparison import Claim, report_claims
from dynascope.studies.study import Study
from dynascope.studies.values import Values

__all__ = ["ClaimsStudy"]


class ClaimsStudy(Study):
    """A study that tests claims about numbers, counts or effects.

    A subclass implements `trained`, which trains and measures networks, and `claimed`, which returns the claims about
    these measurements. The record contains the outcome of every claim, and the claims in `deciding_claims` decide the
    verdict. Exact theoretical values (`exact`) are compared with the measured ones along `along`, and `checks`
    lists the quantities that must agree in every run.

    Example:
        >>> import numpy as np
        >>> from dynascope.comparison import claim_on_mean
        >>> from dynascope.studies import Reference, parameter
        >>> class MeanOfDraws(ClaimsStudy):
        ...     runs: int = parameter(20, "Number of runs.")
        ...     reference = Reference("folklore", "", "The mean of normal draws is small.")
        ...     minutes = 0.01
        ...
        ...     def trained(self):
        ...         return {"draw": (("seed",), np.random.default_rng(0).normal(size=self.runs))}
        ...
        ...     def claimed(self, found):
        ...         return [claim_on_mean("small", "The mean is below one.", found["draw"][1], most=1)]
        >>> MeanOfDraws().observe().claims["small"].outcome
        'holds'
    """

    def trained(self) -> Values:
        """Train networks and measure them."""
        raise NotImplementedError

    def claimed(self, found: Values) -> Sequence[Claim] | Values:
        """The claims about the measurements, or the variables of `report_effects`."""
        raise NotImplementedError

    def observed(self) -> xr.Dataset:
        """The record of the measurements, in the precision used for training, and of the outcome of every claim."""
        return self.judged(self.trained())

    def judged(self, found: Values) -> xr.Dataset:
        """The record of measurements, and of the outcome of every claim about them."""
        with jax.enable_x64(True):
            claims = self.claimed(found)
        return self.record({**found, **(claims if isinstance(claims, Mapping) else report_claims(claims))})
