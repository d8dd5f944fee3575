from .utility import NeuronUtility as NeuronUtility
from .utility import output_utility as output_utility
from .utility import two_layer_utility as two_layer_utility
from .utility import utility_spectrum as utility_spectrum
