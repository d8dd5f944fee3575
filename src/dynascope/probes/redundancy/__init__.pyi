from .clusters import RedundantUnits as RedundantUnits
from .clusters import redundant_units as redundant_units
from .hidden_units import UnitGroup as UnitGroup
from .hidden_units import UnitPart as UnitPart
from .hidden_units import UnitWeights as UnitWeights
from .hidden_units import unit_weights as unit_weights
from .normal import normal_hessians as normal_hessians
