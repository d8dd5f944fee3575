from __future__ import annotations

import dataclasses
import itertools

import jax
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.networks import initial_network
from dynascope.theory import LayerRates
from dynascope.theory.line_inputs import LineNetwork, line_data, line_trajectory, time_scale
from dynascope.theory.regimes import (
    Parametrisation,
    kernel_exponents,
    learning_exponents,
    phase,
    phase_table,
    stable_rates,
    standard_parametrisations,
)
from dynascope.theory.scalar_networks.growth import growth_limit

halves = st.integers(-6, 6).map(lambda number: number / 2)
parametrisations = st.builds(
    Parametrisation,
    width=st.integers(0, 4).map(lambda number: number / 2),
    multiplier=halves,
    first_variance=halves,
    second_variance=halves,
    first_rate=halves,
    second_rate=halves,
    zero_output=st.booleans(),
)

# Table 1 of the paper: phase by default; c_η and phase of corollary 1; c_η, c_γ and phase of 2; the same of 3.
TABLE = {
    "NTK": ("kernel", (0, "kernel"), (1, -1, "learning"), (0, -0.5, "kernel")),
    "mean field": ("frozen", (1, "learning"), (1, -1, "learning"), (0, -0.5, "kernel")),
    "Xavier": ("learning", (0, "learning"), (0, 0, "learning"), (-2, 1, "kernel")),
    "Kaiming": ("unstable", (-1, "kernel"), (1, -1, "learning"), (-1, 0, "kernel")),
    "lazy": ("unstable", (-2, "kernel"), (0, 0, "learning"), (-2, 1, "kernel")),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_table_of_the_paper_comes_out(name):
    default, stable, learning, kernel = phase_table()[name].values()
    assert phase(default).name == TABLE[name][0]
    assert (default.first_rate, default.second_rate) == (0, 0)
    assert (stable.first_rate, phase(stable).name) == TABLE[name][1]
    assert stable.multiplier == default.multiplier
    for turned, wanted in ((learning, TABLE[name][2]), (kernel, TABLE[name][3])):
        assert (turned.first_rate, turned.multiplier, phase(turned).name) == wanted
    for each in (stable, learning, kernel):
        assert each.first_rate == each.second_rate
        same = dataclasses.replace(each, multiplier=0.0, first_rate=0.0, second_rate=0.0)
        assert same == dataclasses.replace(default, multiplier=0.0)


def test_the_definitions_of_the_standard_parametrisations_are_those_of_the_table():
    exponents = [
        (each.width, each.multiplier, each.first_variance, each.second_variance, each.zero_output)
        for each in standard_parametrisations().values()
    ]
    assert exponents == [
        (1, -0.5, 0, 0, False),
        (1, -1, 0, 0, False),
        (1, 0, -1, -1, False),
        (1, 0, 0, -1, False),
        (0, 1, 0, 0, True),
    ]


def parts(parametrisation, kappa: float, seed: int):
    """γP, γQ and the rate k of a random start of a given κ, on inputs of unit second moment, from their definition."""
    size = parametrisation.at(kappa, width=1.0 if parametrisation.width else 20)
    draw = np.random.default_rng(seed)
    u, v = (np.sqrt(each) * draw.normal(size=size.width) for each in (size.second_variance, size.first_variance))
    if parametrisation.zero_output:
        half = size.width // 2
        u, v = np.concatenate([u[:half], -u[:half]]), np.concatenate([v[:half], v[:half]])
    c = (size.first_rate / size.second_rate) ** 0.25
    growing, shrinking = (size.multiplier * np.sum((c * u + sign * v / c) ** 2) / 4 for sign in (1, -1))
    return growing, shrinking, 2 * size.multiplier * np.sqrt(size.first_rate * size.second_rate)


@pytest.mark.parametrize(
    ("name", "row"), list(itertools.product(TABLE, ("default", "stable rates", "learning", "kernel")))
)
def test_learning_speeds_and_parts_of_sampled_starts_have_the_predicted_exponents(name, row):
    each = phase_table()[name][row]
    found = phase(each)
    kappas, speeds, ratios = [1e3, 1e5], [], []
    for kappa in kappas:
        growing, shrinking, rate = parts(each, kappa, seed=3)
        speeds.append(rate * np.sqrt(1 + 4 * growing * shrinking))
        ratios.append(growing / shrinking)
    measured = np.diff(np.log(speeds))[0] / np.log(100)
    # P and Q scatter by the square root of 2/width, 4% at the smaller κ, over two decades.
    assert measured == pytest.approx(found.speed_exponent, abs=0.01)
    assert found.equal_parts
    assert ratios[1] == pytest.approx(1, abs=0.03)


@settings(max_examples=12, deadline=None)
@given(parametrisations)
def test_the_kernel_of_typical_starts_changes_with_the_predicted_exponent(each):
    # Logarithms to base κ of P + Q, θ₀ and S at κ = 10¹², where exponents that differ by ½ are far apart.
    size = each.at(1.0)
    kappas, changes = np.array([1e12, 1e13]), []
    for kappa in kappas:
        size = [kappa**exponent for exponent in dataclasses.astuple(each)[:-1]]
        width, multiplier, first_variance, second_variance, first_rate, second_rate = size
        c = (first_rate / second_rate) ** 0.25
        start = multiplier * width * (c**2 * second_variance + first_variance / c**2) / 2
        overlap = 0.0 if each.zero_output else multiplier * np.sqrt(width * second_variance * first_variance) / 3
        end = np.sqrt(2.0**2 + (start - overlap) * (start + overlap))
        # K∞/K₀ − 1 = (r² − r₀²)/(r₀ (r + r₀)) without cancellation.
        changes.append(abs(2.0**2 - overlap**2) / (start * (end + start)))
    measured = np.diff(np.log(changes))[0] / np.log(10)
    # Corrections are of relative order κ^(−1/2) = 10⁻⁶, times the numbers in front.
    assert measured == pytest.approx(phase(each).kernel_exponent, abs=1e-4)


@settings(max_examples=12, deadline=None)
@given(parametrisations)
def test_the_kernel_stays_just_where_both_conditions_of_the_theorem_hold(each):
    found = phase(each)
    from_target, from_start = found.target_exponent, found.start_exponent
    assert from_target == each.multiplier + (each.first_rate + each.second_rate) / 2
    larger = max(each.first_rate + each.second_variance, each.second_rate + each.first_variance)
    assert from_start == 2 * each.multiplier + each.width + larger
    assert (found.kernel_exponent < 0) == (found.equal_parts and found.start_dominates)
    assert found.speed_exponent == max(from_target, from_start)
    stable = "kernel" if found.kernel_exponent < 0 else "learning"
    assert found.name == {-1: "frozen", 0: stable, 1: "unstable"}[int(np.sign(found.speed_exponent))]


@settings(max_examples=12, deadline=None)
@given(parametrisations, halves)
def test_common_rates_only_set_the_unit_of_time_and_the_multiplier_can_be_absorbed(each, exponent):
    found = phase(each)
    faster = dataclasses.replace(each, first_rate=each.first_rate + exponent, second_rate=each.second_rate + exponent)
    assert phase(faster).kernel_exponent == found.kernel_exponent
    assert phase(faster).speed_exponent == found.speed_exponent + exponent
    absorbed = dataclasses.replace(
        each,
        multiplier=0.0,
        second_variance=each.second_variance + 2 * each.multiplier,
        second_rate=each.second_rate + 2 * each.multiplier,
    )
    assert phase(absorbed) == found


@settings(max_examples=12, deadline=None)
@given(parametrisations, st.floats(0.01, 3.0))
def test_the_corollaries_turn_every_start_into_the_phase_that_they_promise(each, margin):
    assert phase(stable_rates(each)).speed_exponent == 0
    assert phase(learning_exponents(each)).name == "learning"
    bound = -(each.width + max(each.first_variance, each.second_variance))
    assume(each.zero_output or each.width or each.first_variance != each.second_variance)
    assert phase(kernel_exponents(each)).name == "kernel"
    assert phase(kernel_exponents(each, multiplier=bound + margin)).name == "kernel"
    with pytest.raises(InputError, match="multiplier"):
        kernel_exponents(each, multiplier=bound - margin)


def test_at_a_fixed_width_the_kernel_stays_from_zero_output_or_unequal_layers_only():
    balanced = Parametrisation(multiplier=1.0, first_rate=-2.0, second_rate=-2.0)
    assert (phase(balanced).name, phase(balanced).equal_parts) == ("learning", False)
    assert phase(dataclasses.replace(balanced, zero_output=True)).name == "kernel"
    unequal = dataclasses.replace(balanced, second_variance=-1.0)
    assert (phase(unequal).name, phase(unequal).kernel_exponent) == ("kernel", -1.0)
    with pytest.raises(InputError, match="a nonzero initial output") as refusal:
        kernel_exponents(balanced)
    assert refusal.value.argument == "parametrisation"


def test_equal_exponents_are_recognised_through_rounding():
    third = Parametrisation(width=0.3, multiplier=-0.1 - 0.2)
    assert phase(stable_rates(third)).name == "learning"
    assert phase(stable_rates(third)).speed_exponent == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_a_drawn_network_trains_as_one_with_the_multiplier(name):
    each = dataclasses.replace(standard_parametrisations()[name], first_rate=0.5, second_rate=-0.5)
    size = each.at(9.0, width=4.0)
    network, rates = initial_network(each, 9.0, 2, width=4.0, seed=1)
    assert network.first.shape == (2, size.width)
    data = line_data([[0.6, 0.8], [-0.6, -0.8]], [1.5, -1.5])
    with jax.enable_x64(True):
        times = np.array([0.0, 0.3, 1.0]) / size.multiplier
        first, second = network.first, network.second[:, 0]
        absorbed = line_trajectory(LineNetwork(first, second, rates=LayerRates(**rates)), data, times)
        layer_rates = LayerRates(size.first_rate, size.second_rate)
        drawn = LineNetwork(first, second / size.multiplier, size.multiplier, layer_rates)
        explicit = line_trajectory(drawn, data, times)
    np.testing.assert_allclose(absorbed.strength, explicit.strength, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(absorbed.first, explicit.first, rtol=1e-10, atol=1e-12)
    assert float(np.abs(explicit.strength[0])) < 1e-12 or not each.zero_output


def test_drawn_weights_have_the_variances_of_the_parametrisation():
    each = Parametrisation(width=1.0, multiplier=0.5, first_variance=-1.0, second_variance=0.5)
    network, rates = initial_network(each, 4000.0, 3, 2, activation="relu", seed=2)
    # 8000 and more squares of normal numbers scatter by less than 2%.
    assert np.var(network.first) == pytest.approx(1 / 4000, rel=0.08)
    assert np.var(network.second) == pytest.approx(4000**1.5, rel=0.08)
    assert rates == {"first": 1.0, "second": pytest.approx(4000)}
    assert network.activation.name == "relu"


def test_the_lazy_kernel_moves_as_the_exact_solution_says():
    lazy = standard_parametrisations()["lazy"]
    changes = []
    for kappa in (1e2, 1e3):
        network, rates = initial_network(lazy, kappa, 2, width=8, seed=5)
        data = line_data([[0.6, 0.8], [-0.6, -0.8]], [1.5, -1.5])
        with jax.enable_x64(True):
            drawn = LineNetwork(network.first, network.second[:, 0], rates=LayerRates(**rates))
            scale = time_scale(drawn, data)
            ratio = float(scale.target_rate / scale.initial_rate)
        # From zero output K∞/K₀ = √(1 + ratio²).
        changes.append(np.expm1(np.log1p(ratio**2) / 2))
    assert np.log10(changes[1] / changes[0]) == pytest.approx(phase(lazy).kernel_exponent, abs=1e-3)
    assert str(growth_limit(1.5, 1.0, 1.0).status) == "converges"


@pytest.mark.parametrize(
    ("field", "value"),
    [("width", -1.0), ("width", np.nan), ("multiplier", np.inf), ("second_rate", -np.inf)],
)
def test_exponents_without_a_meaning_are_refused_by_name(field, value):
    with pytest.raises(InputError) as refusal:
        Parametrisation(**{field: value})
    assert refusal.value.argument == field


@pytest.mark.parametrize(("field", "value"), [("scaling_parameter", 0.0), ("scaling_parameter", np.nan), ("width", -1)])
def test_a_scale_or_width_that_is_not_positive_is_refused(field, value):
    with pytest.raises(InputError) as refusal:
        Parametrisation().at(**{"scaling_parameter": 2.0, field: value})
    assert refusal.value.argument == field
