"""Every function that says it can be differentiated has the slope between neighbours, also at degenerate points."""

from __future__ import annotations

import functools
import re

import jax
import numpy as np
import pytest
from documented import members

from dynascope import theory
from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory import balanced, deep_modes, features, line, modes, neuron, scaling_laws, transfer, wide

SAYS_SO = {
    name
    for name, member in members(theory).items()
    if re.search(r"differentia(ble|ted)", member.doc) and "domain" not in name
}
TIMES = np.array([0.3, 1.0])
SAMPLES = np.random.default_rng(0).normal(size=(2, 5, 2))
THREE_INPUTS = np.random.default_rng(2).normal(size=(5, 3))
ON_LINE = line.LineData(np.array([0.6, 0.8]), 2.0, 0.6)
TWINS = np.eye(2)
WIDE = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def gram(target):
    return balanced.gram(TWINS, TWINS, target, TIMES, steps=4)[:3]


def flow(start, gaps):
    return wide.deep_isotropic_flow(TIMES, *SAMPLES, start, gaps)


def isotropic(start, imbalance):
    return wide.isotropic_flow(TIMES, THREE_INPUTS, SAMPLES[1], start, imbalance, 2)


def on_a_line(first, second):
    return line.trajectory(first, second, ON_LINE, TIMES)


def kernel_error(intensity, coefficients):
    return features.kernel_regression_error(intensity, coefficients, 2.0)[3:6]


def readout(first, new_map):
    return transfer.transfer_error(first, new_map, TIMES)


def reversal(strength, balance):
    return transfer.reversal_trajectory(TIMES, strength, balance)


def setting(target, output, weights):
    return modes.scalar.trajectory(modes.scalar.Setting(target, output, weights), TIMES)


def strength(target, power, output, weight):
    return modes.mode_strength(TIMES, target, power, output, weight)


def one_neuron(output, weights, target):
    return neuron.trajectory(output, weights, target, TIMES)


def function_space(inputs, targets, start):
    return neuron.function_space_flow(TIMES, inputs, targets, start, 0.5)[:2]


# Name, function, where it is moved, and what it is given besides: at equal singular values, at nothing, at a balanced
# start.
POINTS = [
    ("balanced.gram", gram, (2 * TWINS,)),
    ("balanced.gram", gram, (0 * TWINS,)),
    ("deep_modes.strength_at", functools.partial(deep_modes.strength_at, depth=3), (TIMES, 1.0, 0.2)),
    ("deep_modes.strength_at", lambda start: deep_modes.strength_at(TIMES, 0.0, start, depth=2), (0.3,)),
    ("deep_modes.time_to_strength", functools.partial(deep_modes.time_to_strength, depth=2), (0.5, 1.0, 0.2)),
    ("features.collapse_trajectory", lambda *a: features.collapse_trajectory(TIMES, [4, 4], *a)[:4], (0.2, 0.2)),
    ("features.effective_ridge", functools.partial(features.effective_ridge, samples=2.0), (np.ones(4),)),
    (
        "features.kernel_regression_error",
        kernel_error,
        (np.ones(4), np.zeros(4)),
    ),
    (
        "line.trajectory",
        on_a_line,
        (np.zeros((2, 2)), np.ones(2)),
    ),
    ("line.trajectory", on_a_line, (WIDE[:, :2], np.zeros(2))),
    ("modes.mode_strength", strength, (1.0, 1.0, 0.3, 0.3)),
    ("modes.mode_strength", strength, (0.0, 1.0, 0.0, 0.3)),
    ("modes.scalar.trajectory", setting, (1.0, np.zeros(2), np.ones(2))),
    ("neuron.function_space_flow", function_space, (SAMPLES[0], SAMPLES[1][:, 0], np.zeros(2))),
    ("neuron.interpolator", lambda y, w: neuron.interpolator(TWINS, y, 0.5, w).coefficients, (np.ones(2), np.ones(2))),
    ("neuron.kernel_change", lambda *a: neuron.kernel_change(1.0, np.ones(2), *a), (2.0, np.array([1.0, -1.0]))),
    ("neuron.trajectory", one_neuron, (1.0, np.array([1.0, 0.0]), np.array([0.0, 2.0]))),
    # It says that it has no derivative in a target of zero.
    ("neuron.trajectory", one_neuron, (1.0, np.array([1.0, 0.0])), (np.zeros(2),)),
    ("scaling_laws.skill_integral", scaling_laws.skill_integral, (0.4, 99.0, 0.1)),
    ("transfer.reversal_time", transfer.reversal_time, (1.5, 0.2)),
    (
        "transfer.reversal_trajectory",
        reversal,
        (np.array([0.5, 2.0]), 0.3),
    ),
    (
        "transfer.transfer_error",
        readout,
        (np.diag([1.0, 1.0, 0.5]), np.ones((3, 1))),
    ),
    ("transfer.transfer_error", functools.partial(readout, WIDE.T), (np.ones((3, 1)),)),
    ("transfer.transfer_speed", transfer.transfer_speed, (np.array([0.0, 1.0]), 2.0)),
    ("wide.deep_isotropic_flow", flow, (0.5 * TWINS, np.array([0.5, -0.2]))),
    ("wide.deep_isotropic_flow", flow, (0.5 * TWINS, np.zeros(2))),
    ("wide.deep_isotropic_rate", wide.deep_isotropic_rate, (np.array([0.8, 0.8]), np.array([0.5, -0.2]))),
    ("wide.isotropic_flow", isotropic, (WIDE.T, 0.5)),
    ("wide.isotropic_flow", isotropic, (0 * WIDE.T, 0.5)),
    ("wide.isotropic_flow", isotropic, (np.ones((3, 2)), 0.5)),
    ("wide.isotropic_preconditioner", lambda b: wide.isotropic_preconditioner(b, 0.0, 2), (TWINS,)),
    ("wide.isotropic_preconditioner", lambda b, d: wide.isotropic_preconditioner(b, d, 3), (WIDE, 0.5)),
    ("wide.layer_spectra", wide.layer_spectra, (np.array([0.8, 0.8]), np.array([0.5, -0.2]))),
    ("wide.layer_spectra", wide.layer_spectra, (0.8, np.array([0.4]))),
]


def test_every_function_that_can_be_differentiated_has_a_degenerate_point():
    assert {name for name, *_ in POINTS} == SAYS_SO


def weighed(answer):
    parts = [part for part in jax.tree.leaves(answer) if np.issubdtype(part.dtype, np.floating)]
    # Not the sum alone, in which what is antisymmetric would cancel.
    return sum((part * np.cos(np.arange(part.size)).reshape(part.shape)).sum() for part in parts)


@functools.cache
def gradient_of(function, numbers):
    """One program for all the points at which a function is asked."""
    return jit(jax.grad(lambda *point: weighed(function(*point)), argnums=tuple(range(numbers))))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "function", "point", "held"), [(*each, ())[:4] for each in POINTS])
def test_its_derivative_there_is_the_slope_between_neighbours(name, function, point, held):
    point = [np.asarray(part, float) for part in point]
    random, step = np.random.default_rng(1), 1e-4
    ways = [random.normal(size=part.shape) for part in point]

    def at(distance):
        there = (part + distance * way for part, way in zip(point, ways, strict=True))
        return float(weighed(function(*there, *held)))

    with jax.enable_x64(True):
        gradient = jax.device_get(gradient_of(function, len(point) + len(held))(*point, *held))
        slope = (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step)
    derivative = sum(float(np.sum(part * way)) for part, way in zip(gradient, ways, strict=False))
    # The step to the fourth, and the solvers' 1e-10 over the step.
    assert derivative == pytest.approx(slope, rel=1e-6, abs=1e-5)


def test_layers_that_are_known_up_to_a_rotation_refuse_to_be_differentiated():
    with jax.enable_x64(True), pytest.raises(InputError, match="up to a rotation"):
        jax.grad(lambda target: transfer.converged_layers(target, 0.5, 2)[0].sum())(TWINS)
