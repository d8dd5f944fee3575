"""Scaling laws of the loss in time, samples, parameters and compute, derived from theory or fitted to your runs.

The theory is the multilinear model (`theory.skills.multilinear`) with skills of frequency P(k) ∝ k^−(α+1). `fit`,
`fit_joint` and `plan` apply to the losses of any network.
"""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
