from .classification import train_classifier as train_classifier
from .continuous import gradient_flow as gradient_flow
from .discrete import descend as descend
from .exact.deep_diagonal import deep_diagonal_flow as deep_diagonal_flow
from .exact.neuron_bundles import linear_flow as linear_flow
from .exact.signed_phases import diagonal_flow as diagonal_flow
