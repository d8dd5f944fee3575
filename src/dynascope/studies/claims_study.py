"""A study whose claims are numbers, counts or effects, which bounds or intervals over seeds decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import xarray as xr

from dynascope.comparison import Claim, report_claims
from dynascope.studies.study import Study
from dynascope.studies.values import Values

__all__ = ["ClaimsStudy"]


class ClaimsStudy(Study):
    """A study whose claims are about numbers, counts or effects.

    It states `trained`, what is measured on training, and `claimed`, what is claimed of that; the record reports on
    every claim, and those of `judged_claims` decide the verdict. What a theory knows exactly beside it (`exact`) is
    compared along `along`, as a claim or, where it holds of every run, as one of the `checks`.

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
        """Train, and measure."""
        raise NotImplementedError

    def claimed(self, found: Values) -> Sequence[Claim] | Values:
        """The claims on what was measured; or the variables by which effects are reported (`report_effects`)."""
        raise NotImplementedError

    def observed(self) -> xr.Dataset:
        """The record of `trained`, in whatever precision that trains, with what it says of every claim."""
        found = self.trained()
        with jax.enable_x64(True):
            claims = self.claimed(found)
        return self.record({**found, **(claims if isinstance(claims, Mapping) else report_claims(claims))})
