from .clusters import redundant_units as redundant_units
from .normal import normal_hessians as normal_hessians
from .units import UnitGroup as UnitGroup
from .units import UnitPart as UnitPart
from .units import UnitWeights as UnitWeights
from .units import unit_weights as unit_weights
