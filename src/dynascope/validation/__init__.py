"""Validation of arguments.

Each check raises `InputError` with the argument, the value received and a remedy. Known values are checked in NumPy or
plain Python, before anything is compiled. Inside `jit`, only the shape of an array is known, and values outside a
domain give NaN.
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
from dynascope.validation.memory import formatted_bytes, require_memory, require_room, require_unpacked
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
    "formatted_bytes",
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
    "shown",
    "shown_error",
]
