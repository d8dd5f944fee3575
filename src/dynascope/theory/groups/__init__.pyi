from .composition import composition_staircase as composition_staircase
from .composition import construction_width as construction_width
from .composition_utility import composition_utility as composition_utility
from .composition_utility import maximal_utility as maximal_utility
from .composition_utility import maximisers as maximisers
from .irrep_neurons import neurons_near_irreps as neurons_near_irreps
