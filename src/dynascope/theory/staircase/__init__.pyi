from .diagonal import diagonal_staircase as diagonal_staircase
from .linear import linear_staircase as linear_staircase
from .steps import Staircase as Staircase
