"""The public functions of theory, without what states domains, which computes nothing."""

from __future__ import annotations

from documented import members

from dynascope import theory
from dynascope.arguments.annotations import bounds_of_arguments

__all__ = ["MEMBERS", "NOT_NEGATIVE", "POSITIVE"]

MEMBERS = {name: member for name, member in members(theory).items() if not name.startswith("domain.")}


def _stated(low: float, *, allowed: bool) -> set[str]:
    """Arguments whose annotations have this lower bound, by function and name, and whether they may be equal to it."""
    return {
        f"{name}.{argument}"
        for name, member in MEMBERS.items()
        for argument, bounds in bounds_of_arguments(member.function).items()
        if (bounds.minimum if allowed else bounds.above) == low
    }


# Further arguments by name, or by function and name, of which zero and negative numbers are refused, or negative ones
# only.
_POSITIVE = """
    deviation duration first_rate fraction
    input_power largest_curvature learning_rate learning_rates losses multiplier output_rate power
    prefactor product products rate scale schedule second_rate spectrum_exponent squared_norm
    target_power weight_rate
    grokking.fitting_time.weight_decay grokking.grokking_time.weight_decay grokking.late_curve.weight_decay
    grokking.weight_product.weight_decay
    scalar_networks.clean_stages.target scalar_networks.scalar.equivalent_scalings.factor
    scalar_networks.stage_threshold.target noise.noisy_student_exponent.noise_variance
    noise.quartic_stationary_law.growth noise.quartic_stationary_law.noise noise.stationary_law.noise
    symmetry.convergence_orders.errors symmetry.equilibration_steps.weight_decay
    symmetry.equilibrium_angular_step.weight_decay symmetry.equilibrium_squared_norm.weight_decay
    symmetry.equilibrium_squared_norm_from_steps.weight_decay symmetry.implicit_rmsprop.weight_decay
    symmetry.squared_norm_path.initial
"""
_NOT_NEGATIVE = """
    curvature_deviation curvature_variance dampening damping growing
    momentum noise_variance rates samples
    shrinking singular_value sizes squared_displacement squared_gradient squared_gradients squares steepness times
    weight_decay noise.discrete_moments.noise noise.discrete_moments.steps
    noise.discrete_stationary_moments.noise noise.displacement_exponent.noise noise.finite_data_moments.steps
    noise.gaussian_input_moments.label_noise noise.gaussian_input_moments.steps noise.langevin_displacement.noise
    noise.langevin_moments.noise noise.langevin_stationary_moments.noise noise.oscillation.curvature
    noise.quartic_collapse_exponent.noise noise.quartic_path.noise noise.stationary_displacement.noise
    noise.stationary_displacement.steps noise.step_powers.steps noise.thermometer.noise
    noise.velocity_correlation.noise noise.velocity_correlation.steps
    symmetry.damped_kernels.frequency symmetry.modified_flow_ratio.curvature symmetry.rounding_level.displacements
    symmetry.translation_charge.steps
"""
POSITIVE = {*_POSITIVE.split(), *_stated(0, allowed=False), *_stated(1, allowed=True)}
NOT_NEGATIVE = {*_NOT_NEGATIVE.split(), *_stated(0, allowed=True)}
