from . import clock as clock
from . import groups as groups
from . import growth_factor as growth_factor
from . import modes as modes
from . import passage_time as passage_time
from . import relu_alignment as relu_alignment
from . import stages as stages
from . import staircase as staircase
