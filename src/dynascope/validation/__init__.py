"""Every check of an argument, once.

Each raises `InputError` with the argument, the value received and what to do instead. What is known is checked in NumPy
or plain Python, before anything is compiled; of an array that JAX traces only the shape is known, and values outside a
domain give NaN there.
"""

from dynascope.validation.annotations import require_kind
from dynascope.validation.array_libraries import (
    array_namespace,
    holds,
    require_axes,
    require_finite_values,
    require_jax_arrays,
    require_labels,
)
from dynascope.validation.arrays import (
    is_traced,
    require_array,
    require_covariance,
    require_known,
)
from dynascope.validation.checked import checked, face
from dynascope.validation.known import require_increasing, require_whole_numbers
from dynascope.validation.memory import require_memory, require_room, require_unpacked, said_bytes
from dynascope.validation.numbers import (
    require,
    require_at_least,
    require_choice,
    shown,
    shown_error,
)
from dynascope.validation.shapes import require_broadcast, require_shape
from dynascope.validation.user_functions import calling, require_function

__all__ = [
    "array_namespace",
    "calling",
    "checked",
    "face",
    "holds",
    "is_traced",
    "require",
    "require_array",
    "require_at_least",
    "require_axes",
    "require_broadcast",
    "require_choice",
    "require_covariance",
    "require_finite_values",
    "require_function",
    "require_increasing",
    "require_jax_arrays",
    "require_kind",
    "require_known",
    "require_labels",
    "require_memory",
    "require_room",
    "require_shape",
    "require_unpacked",
    "require_whole_numbers",
    "said_bytes",
    "shown",
    "shown_error",
]
