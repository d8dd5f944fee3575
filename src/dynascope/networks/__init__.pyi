from .deep_linear import DeepLinear as DeepLinear
from .diagonal_linear import DiagonalLinear as DiagonalLinear
from .kinds import network_for as network_for
from .neuron_sum import NeuronSum as NeuronSum
from .neuron_sum import SumOfNeurons as SumOfNeurons
from .two_layer import HomogeneousActivation as HomogeneousActivation
from .two_layer import TwoLayer as TwoLayer
from .two_layer import homogeneous_activation as homogeneous_activation
