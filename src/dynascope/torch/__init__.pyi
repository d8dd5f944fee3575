from .kernel.cost import estimate_cost as estimate_cost
from .kernel.empirical import neural_tangent_kernel as neural_tangent_kernel
from .symmetry.find_symmetries import find_symmetries as find_symmetries
from .symmetry.program import Program as Program
from .symmetry.program import program as program
from .symmetry.watch_charges import WatchedCharges as WatchedCharges
from .symmetry.watch_charges import watch_charges as watch_charges
from .temperature import temperature as temperature
