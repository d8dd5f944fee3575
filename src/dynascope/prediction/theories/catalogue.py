"""All theories from which `predict` and `which` choose, in order of precedence."""

from dynascope.prediction.theories.curves import CURVES
from dynascope.prediction.theories.kernel_regression import KERNELS
from dynascope.prediction.theories.staircases import STAIRCASES
from dynascope.prediction.theories.theory import Theory

__all__ = ["THEORIES"]

THEORIES: tuple[Theory, ...] = (*STAIRCASES, *CURVES, *KERNELS)
