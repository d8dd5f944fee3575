from .axes import parse_axis as parse_axis
from .page import write_sweep_page as write_sweep_page
from .sweep import sweep as sweep
from .swept import Sweep as Sweep
from .swept import load_sweep as load_sweep
