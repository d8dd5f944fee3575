from .activation import activation_staircase as activation_staircase
from .deep_diagonal import deep_diagonal_staircase as deep_diagonal_staircase
from .diagonal import diagonal_staircase as diagonal_staircase
from .linear import linear_staircase as linear_staircase
from .steps import Staircase as Staircase
