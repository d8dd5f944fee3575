from .addition import addition_utility as addition_utility
from .addition import maximal_utilities as maximal_utilities
from .addition import maximiser as maximiser
from .addition import modular_addition_staircase as modular_addition_staircase
from .addition import unexplained_fraction as unexplained_fraction
