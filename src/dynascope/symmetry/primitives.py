"""The supported JAX primitives, with their effect on scalings and shifts of their operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dynascope.symmetry.homogeneity import Degree
from dynascope.symmetry.operation import Operation
from dynascope.symmetry.scaling_rules import ScalingRules
from dynascope.symmetry.shift_rules import ShiftRules, Value

__all__ = ["PRIMITIVES", "UNKNOWN", "Primitive"]


class Primitive(NamedTuple):
    """The rules of a primitive.

    Attributes:
        scaling: Effect of the primitive on the exponents of its operands.
        shift: Effect of the primitive on shifts of its operands.
        pointwise: Whether each element of the result depends only on the elements of the operands at the same index.
    """

    scaling: Callable[[ScalingRules, Operation, list[Degree]], list[Degree]] = ScalingRules.fixed
    shift: Callable[[ShiftRules, Operation, list[Value]], list[Value]] = ShiftRules.unseen
    pointwise: bool = False


UNKNOWN = Primitive()
_Scale, _Shift = ScalingRules, ShiftRules
_POINTWISE = {
    "neg copy copy_p stop_gradient reduce_precision real": (_Scale.kept, _Shift.linear),
    "abs imag conj": (_Scale.kept, _Shift.unseen),
    "convert_element_type": (_Scale.converted, _Shift.converted),
    "add sub add_any": (_Scale.agreeing, _Shift.added),
    "max min": (_Scale.agreeing, _Shift.chosen),
    "clamp nextafter rem complex": (_Scale.agreeing, _Shift.unseen),
    "select_n": (_Scale.chosen, _Shift.chosen),
    "gt ge lt le eq ne": (_Scale.compared, _Shift.compared),
    "atan2": (_Scale.compared, _Shift.unseen),
    "sign": (_Scale.scaleless, _Shift.unseen),
    "is_finite": (_Scale.scaleless, _Shift.finite),
    "mul div": (_Scale.multiplied, _Shift.multiplied),
    "square sqrt rsqrt cbrt integer_pow pow": (_Scale.power, _Shift.unseen),
    "exp log": (_Scale.fixed, _Shift.unseen),
}
_OTHERS = {
    "reshape squeeze expand_dims transpose broadcast_in_dim slice split": (_Scale.rearranged, _Shift.rearranged),
    "rev concatenate stack pad": (_Scale.rearranged, _Shift.unseen),
    "optimization_barrier": (_Scale.kept, _Shift.unseen),
    "reduce_sum reduce_max reduce_min": (_Scale.reduced, _Shift.reduced),
    "reduce_prod argmax argmin": (_Scale.reduced, _Shift.unseen),
    "cumsum cummax cummin": (_Scale.accumulated, _Shift.unseen),
    "sort": (_Scale.sorted, _Shift.unseen),
    "top_k": (_Scale.largest, _Shift.unseen),
    "reduce_window reduce_window_sum reduce_window_max reduce_window_min": (_Scale.windowed, _Shift.unseen),
    "dynamic_slice": (_Scale.sliced, _Shift.unseen),
    "gather": (_Scale.gathered, _Shift.gathered),
    "scatter scatter-add scatter-max scatter-min": (_Scale.scattered, _Shift.unseen),
    "dynamic_update_slice": (_Scale.updated, _Shift.unseen),
    "dot_general": (_Scale.product, _Shift.product),
    "conv_general_dilated": (_Scale.convolved, _Shift.convolved),
}
PRIMITIVES = {
    name: Primitive(*rules, pointwise)
    for rows, pointwise in ((_POINTWISE, True), (_OTHERS, False))
    for names, rules in rows.items()
    for name in names.split()
}
"""Rules by primitive name. For other primitives, operands and results must not change."""
