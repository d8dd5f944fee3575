from .balance import layer_imbalance as layer_imbalance
from .layers import data_alignment as data_alignment
from .layers import layer_alignment as layer_alignment
from .line import line_alignment as line_alignment
from .movement import weight_movement as weight_movement
