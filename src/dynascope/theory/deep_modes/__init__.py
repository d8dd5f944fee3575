"""Modes of deep linear networks: their plateaus at the saddle, and their trajectories.

In a linear network of depth L whose balanced layers are aligned with the singular vectors of whitened data, each mode
has the same weight a in every layer. Its strength s = a^L approaches the singular value σ according to ds/dt = L
s^(2−2/L) (σ − s). Without alignment, the equation is only a model of the order of the jumps and the lengths of the
plateaus.
"""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
