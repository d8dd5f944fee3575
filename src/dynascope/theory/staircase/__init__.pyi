from .activation_times import activation_staircase as activation_staircase
from .deep_diagonal import deep_diagonal_staircase as deep_diagonal_staircase
from .diagonal import diagonal_staircase as diagonal_staircase
from .linear import linear_staircase as linear_staircase
from .multi_index import information_exponent as information_exponent
from .multi_index import overlap_time as overlap_time
from .multi_index import quadratic_index_staircase as quadratic_index_staircase
from .multi_index import utility_polynomial as utility_polynomial
