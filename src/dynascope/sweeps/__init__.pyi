from .axes import parse_axis as parse_axis
from .estimate import Estimate as Estimate
from .estimate import estimate_sweep as estimate_sweep
from .page import write_sweep_page as write_sweep_page
from .running import MOST_CELLS as MOST_CELLS
from .running import sweep as sweep
from .swept import Sweep as Sweep
from .swept import load_sweep as load_sweep
