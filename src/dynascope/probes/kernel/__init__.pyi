from .conventions import NeuralTangentKernel as NeuralTangentKernel
from .cost import Cost as Cost
from .cost import estimate_cost as estimate_cost
from .distance_and_alignment import centred_alignment as centred_alignment
from .distance_and_alignment import kernel_distance as kernel_distance
from .distance_and_alignment import relative_change as relative_change
from .distance_and_alignment import target_alignment as target_alignment
from .empirical import neural_tangent_kernel as neural_tangent_kernel
