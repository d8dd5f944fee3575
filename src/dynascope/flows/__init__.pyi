from .alternating import alternating_flow as alternating_flow
from .continuous import gradient_flow as gradient_flow
from .deep_diagonal import deep_diagonal_flow as deep_diagonal_flow
from .discrete import descend as descend
from .neuron_bundles import linear_flow as linear_flow
from .signed_phases import diagonal_flow as diagonal_flow
