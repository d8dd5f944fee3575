"""Modes of deep linear networks: how long a direction of the data waits at a saddle, and how it is then learned.

In a linear network of depth L with balanced layers that are aligned with the singular vectors of whitened data, every
layer holds a mode with the weight a, and its strength s = a^L learns the singular value σ along
ds/dt = L s^(2−2/L) (σ − s). Without alignment it is a model: the order of the jumps and how long the plateaus are.
"""

from dynascope.validation import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
