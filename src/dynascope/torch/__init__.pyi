from .kernel.cost import estimate_cost as estimate_cost
from .kernel.empirical import neural_tangent_kernel as neural_tangent_kernel
