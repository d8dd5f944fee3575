"""A power law, of a theory or of a fit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.validation import checked
from dynascope.validation.bounded import PositiveNumbers

__all__ = ["PowerLaw"]


class PowerLaw(NamedTuple):
    """L = prefactor · x^−exponent.

    Attributes:
        prefactor: Loss at one unit of the resource.
        exponent: Positive if the loss falls.
    """

    prefactor: float
    exponent: float

    __repr__ = short_repr

    @checked
    def loss(self, resource: PositiveNumbers) -> Float[np.ndarray, ...]:
        """The loss at some amounts of the resource."""
        return self.prefactor * np.asarray(resource) ** -self.exponent
