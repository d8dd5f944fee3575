"""The theories from which `predict` and `which` choose, in one list."""

from dynascope.prediction.theories.curves import CURVES
from dynascope.prediction.theories.staircases import STAIRCASES
from dynascope.prediction.theories.theory import Theory

__all__ = ["CURVES", "STAIRCASES", "THEORIES", "Theory"]

THEORIES: tuple[Theory, ...] = (*STAIRCASES, *CURVES)
