"""The public functions of theory, without what states domains, which computes nothing."""

from __future__ import annotations

import contextlib
import inspect
from typing import get_args

from documented import Member, members

from dynascope import theory
from dynascope.arguments.annotations import Bounds, bounds_of

__all__ = ["MEMBERS", "NOT_NEGATIVE", "POSITIVE"]

MEMBERS = {name: member for name, member in members(theory).items() if not name.startswith("domain.")}

# Arguments by name, or by function and name, of which zero and negative numbers are refused, or negative ones only.
_POSITIVE = """
    classifier_rate compute contrast exponent feature_rate final first_rate fraction frequencies
    input_power largest_rate learning_rate losses multiplier output_rate
    prefactor rate resource scale second_rate spectrum_exponent strengths
    target_power target_scale value weight_rate features.collapse_trajectory.initial_features
    features.effective_ridge.samples features.kernel_regression_error.samples features.learnability.samples
    margins.log_time.start margins.margin_at_time.start
    margins.normalised_time.start scalar_networks.clean_stages.target scalar_networks.scalar.equivalent_scalings.factor
    scalar_networks.stage_threshold.target
    scaling_laws.data_law.samples scaling_laws.fit_joint.data scaling_laws.fit_joint.parameters
    scaling_laws.missing_loss.skills
    scaling_laws.parameter_law.neurons scaling_laws.time_law.neurons scaling_laws.time_law.times
    scaling_laws.time_window.skills skills.half_strength_steps.offset staircase.overlap_time.initial
"""
_NOT_NEGATIVE = """
    counts floor growing initial_classifier
    initial_features intensity lower margin missing multiplicity rates ridge samples
    shrinking singular_value times
    unreachable_power
    skills.calibrate.steps
    skills.calibrate_parameters.neurons skills.multilinear.skill_strengths.neurons
    skills.multilinear.training_loss.neurons skills.parameter_emergence.neurons skills.time_emergence.steps
"""


def stated_bounds(member: Member) -> dict[str, Bounds]:
    """The bounds that the annotations of a function state, by argument; of an optional one those of what is given."""
    plain, found = inspect.unwrap(member.function), {}
    for name, annotation in plain.__annotations__.items():
        with contextlib.suppress(Exception):  # whatever an annotation raises that only type checkers can read
            kind = eval(annotation, plain.__globals__)
            bounds = next(filter(None, map(bounds_of, (kind, *get_args(kind)))), None)
            found |= {} if bounds is None else {f"{member.name}.{name}": bounds}
    return found


_BOUNDS = {name: bounds for member in MEMBERS.values() for name, bounds in stated_bounds(member).items()}
POSITIVE = {*_POSITIVE.split(), *(name for name, each in _BOUNDS.items() if each.above >= 0 or each.minimum > 0)}
NOT_NEGATIVE = {*_NOT_NEGATIVE.split(), *(name for name, each in _BOUNDS.items() if each.minimum == 0)}
