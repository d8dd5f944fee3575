from .continuous import gradient_flow as gradient_flow
from .discrete import descend as descend
