from .curvature import top_curvatures as top_curvatures
from .kernel.cost import estimate_cost as estimate_cost
from .kernel.empirical import neural_tangent_kernel as neural_tangent_kernel
from .symmetry.program import Program as Program
from .symmetry.program import program as program
from .symmetry.structure import structure as structure
from .symmetry.watch_charges import WatchedCharges as WatchedCharges
from .symmetry.watch_charges import watch_charges as watch_charges
