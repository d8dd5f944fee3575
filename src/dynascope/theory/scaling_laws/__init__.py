"""Scaling laws: how the loss falls with time, samples, parameters and compute, from a theory or from one's own runs.

The theory is that of the multilinear model with skills of frequency P(k) ∝ k^−(α+1), `theory.skills.multilinear`;
`fit` and `plan` take the numbers of any network.
"""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
