from .charge import Charge as Charge
from .charge import Part as Part
from .charge import charges as charges
from .structure import BrokenSymmetry as BrokenSymmetry
from .structure import Structure as Structure
from .structure import structure as structure
