from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.flows import GradientFlow, gradient_flow
from dynascope.groups import (
    Group,
    cyclic,
    dihedral,
    find_group,
    group_from_table,
    real_irreducible_representations,
)
from dynascope.groups.encodings import encoding_from_fourier
from dynascope.networks import TwoLayer
from dynascope.tasks.algebra.group_composition import group_composition
from dynascope.theory.groups import composition_staircase, construction_width, neurons_near_irreps
from dynascope.theory.groups.composition import _coupled

# Golden numbers are stored with 12 digits.
GOLDEN = 1e-11


def waves(n: int, *terms: tuple[int, float, float]) -> np.ndarray:
    """Σ A cos(2π ξ j / n + φ) for the (ξ, A, φ)."""
    turn = 2 * np.pi * np.arange(n) / n
    return np.sum([amplitude * np.cos(frequency * turn + phase) for frequency, amplitude, phase in terms], axis=0)


def test_golden_staircase_of_s3():
    x = encoding_from_fourier(dihedral(3), {"sign": 1.2, "2d": 2.2})
    steps = composition_staircase(dihedral(3), x, 2, scale=1e-7)
    assert [each.split()[-1] for each in steps.learned] == ["2d", "sign"]
    np.testing.assert_allclose(steps.features["utility"][1], [0.197185185185, 0.045254833996], rtol=GOLDEN)
    np.testing.assert_allclose(steps.accelerated_times, [1.690458302029, 7.365695637360], rtol=GOLDEN)
    np.testing.assert_allclose(steps.levels, [1.733333333333, 0.12, 0], rtol=GOLDEN, atol=1e-14)
    np.testing.assert_allclose(steps.times, steps.accelerated_times * np.log(1e7), rtol=GOLDEN)
    assert (steps.degree, steps.normalised) == (3, True)


def test_golden_staircase_of_three_elements_of_c5():
    steps = composition_staircase(cyclic(5), waves(5, (1, 1, 0.4), (2, 0.6, -0.9)), 3, scale=1e-3)
    np.testing.assert_allclose(steps.features["utility"][1], [0.29296875, 0.03796875], rtol=GOLDEN)
    np.testing.assert_allclose(steps.accelerated_times, [0.8533333333333, 6.58436213992], rtol=GOLDEN)
    np.testing.assert_allclose(steps.levels, [1.7, 0.45, 0], rtol=GOLDEN, atol=1e-14)


def test_golden_staircase_of_modular_addition():
    x = waves(17, (1, 0.8, 0.4), (2, 0.52, -0.9), (4, 0.36, 1.7))
    steps = composition_staircase(cyclic(17), x, 2, scale=1e-7)
    assert [each.split()[-1] for each in steps.learned] == ["1", "2", "4"]
    np.testing.assert_allclose(steps.accelerated_times, [0.273018623983, 0.994150656286, 2.996089152072], rtol=GOLDEN)
    np.testing.assert_allclose(steps.levels, [4.42, 1.7, 0.5508, 0], rtol=GOLDEN, atol=1e-14)
    assert not any(steps.slow)


def test_golden_parts_of_an_irrep_with_unequal_singular_values():
    x = encoding_from_fourier(dihedral(3), {"2d": [2.2, 1.2]}, seed=4)
    steps = composition_staircase(dihedral(3), x, 2, scale=1e-7)
    # Stored with five digits.
    np.testing.assert_allclose(steps.accelerated_times, [1.6905, 3.0992, 5.6818, 10.417], rtol=5e-5)
    np.testing.assert_allclose(steps.levels, [1.046667, 0.643333, 0.24, 0.12, 0], atol=1e-6)
    assert [bool(reason) for reason in steps.slow] == [False, True, True, True]
    assert "2 of 4" in steps.learned[1]
    assert any("2d" in warning for warning in steps.warnings)


@given(
    st.sampled_from([("C6", 2), ("C5", 4), ("D4", 2), ("D3", 3), ("Q8", 2), ("Q8", 3), ("A4", 2), ("C3xQ8", 2)]),
    st.integers(0, 1000),
)
def test_the_drops_hold_the_whole_power_of_a_generic_encoding(case, seed):
    group, k = find_group(case[0]), case[1]
    x = np.random.default_rng(seed).normal(size=group.order)
    x -= x.mean()
    steps = composition_staircase(group, x, k, scale=1e-3)
    assert np.isclose(steps.levels[0], x @ x / 2)
    assert steps.levels[-1] == pytest.approx(0, abs=1e-12)
    assert np.all(np.diff(steps.levels) < 0)
    assert np.all(np.diff(steps.accelerated_times) > 0)


@given(st.sampled_from(["C6", "D4", "Q8", "A4"]), st.integers(0, 1000), st.randoms(use_true_random=False))
def test_renumbering_the_elements_keeps_the_staircase(name, seed, random):
    group = find_group(name)
    x = np.random.default_rng(seed).normal(size=group.order)
    x -= x.mean()
    order = [0, *random.sample(range(1, group.order), group.order - 1)]
    renumbered = group_from_table(np.argsort(order)[group.table[np.ix_(order, order)]])
    before = composition_staircase(group, x, 2, scale=1e-4)
    after = composition_staircase(renumbered, x[order], 2, scale=1e-4)
    np.testing.assert_allclose(after.accelerated_times, before.accelerated_times, rtol=1e-9)
    np.testing.assert_allclose(after.levels, before.levels, atol=1e-10)


@given(st.floats(0.2, 5.0), st.integers(2, 5))
def test_a_larger_encoding_is_learned_sooner_by_the_degree_of_the_utility(factor, k):
    x = waves(7, (1, 1, 0.2), (3, 0.5, 1.0))
    one, other = (composition_staircase(cyclic(7), size * x, k, scale=1e-2) for size in (1, factor))
    np.testing.assert_allclose(other.accelerated_times, one.accelerated_times / factor ** (k + 1), rtol=1e-9)
    np.testing.assert_allclose(other.levels, one.levels * factor**2, rtol=1e-9, atol=1e-12)


def test_a_function_of_one_factor_of_a_product_is_learned_as_on_that_factor():
    x = waves(7, (1, 1, 0.2), (2, 0.6, 1.0))
    both = composition_staircase(find_group("C7xC2"), np.repeat(x, 2), 2, scale=1e-3)
    one = composition_staircase(cyclic(7), x, 2, scale=1e-3)
    # Coefficients double, and so does n: U* ∝ ‖x̂‖³ n^(−3/2), levels ∝ ‖x̂‖² / n.
    np.testing.assert_allclose(both.accelerated_times, one.accelerated_times / 2**1.5, rtol=1e-9)
    np.testing.assert_allclose(both.levels, 2 * one.levels, rtol=1e-9, atol=1e-12)


def test_equal_utilities_jump_together():
    one_hot = np.eye(7)[0] - 1 / 7
    steps = composition_staircase(cyclic(7), one_hot, 2, scale=1e-3)
    assert [re.findall(r"\d", each) for each in steps.learned] == [["1", "2", "3"]]
    np.testing.assert_allclose(steps.levels, [3 / 7, 0], atol=1e-14)
    assert all(f"frequency {each}" in steps.warnings[0] for each in (1, 2, 3))


def test_what_a_singular_coefficient_hides_stays():
    group = dihedral(3)
    x = encoding_from_fourier(group, {"2d": [2.0, 0.0], "sign": 1.0})
    steps = composition_staircase(group, x, 2, scale=1e-3)
    # Of the energy (2/6) 2² in the plane, one path of two has a utility.
    assert steps.levels[-1] == pytest.approx(1 / 3)
    assert steps.levels[0] == pytest.approx(x @ x / 2)
    assert "0.333" in steps.warnings[-1]
    with pytest.raises(InputError, match="singular values"):
        construction_width(group, x, 2)


@pytest.mark.parametrize(
    ("group", "amplitudes", "k", "width"),
    [
        (dihedral(3), {"sign": 1.2, "2d": 2.2}, 2, 18),
        (dihedral(3), {"sign": 1.2, "2d": 2.2}, 3, 68),
        (cyclic(8), {"frequency 1": 1.0}, 2, 16),
        (cyclic(8), {"frequency 4": 1.0}, 2, 2),
        (find_group("Q8"), {"2d": 1.0}, 2, 128),
    ],
)
def test_the_width_of_the_construction(group, amplitudes, k, width):
    x = encoding_from_fourier(group, amplitudes)
    assert construction_width(group, x, k) == width
    assert composition_staircase(group, x, k, scale=0.1).features["construction_width"][1][-1] == width


@pytest.mark.parametrize(
    ("name", "k"), [("C13", 2), ("C13", 3), ("C12", 3), ("D3", 2), ("D5", 2), ("Q8", 3), ("A4", 2)]
)
def test_active_neurons_are_pushed_exactly_into_the_irreps_that_are_marked(name, k):
    group = find_group(name)
    n, draw = group.order, np.random.default_rng(0)
    x = draw.normal(size=n)
    task = group_composition(group, x - x.mean(), sequence_length=k)
    irreps = real_irreducible_representations(group)[1:]
    projections = [(i.members * i.dimension / n * i.character.real)[group.table[group.inverse]] for i in irreps]
    for source, within in zip(irreps, projections, strict=True):
        u, w = draw.normal(size=(6, k, n)) @ within, draw.normal(size=(6, n)) @ within
        hidden = task.inputs @ u.reshape(6, -1).T
        residual = task.targets - hidden**k @ w
        force = ((residual @ w.T) * hidden ** (k - 1)).T @ task.inputs
        for target, onto in zip(irreps, projections, strict=True):
            if target is not source:
                pushed = np.linalg.norm(force.reshape(6, k, n) @ onto) / np.linalg.norm(force)
                # Rounding is below 1e-11; the smallest force here is above 1e-5.
                assert (pushed > 1e-8) == _coupled(source, target, k), (source, target)


def slopes_and_plateaus(group: Group, x: np.ndarray, k: int, width: int, scales: list[float], seed: int = 0):
    """Slopes of the crossing times against log(1/scale), and the distance of the loss to each plateau."""
    steps = composition_staircase(group, x, k, scale=min(scales))
    middles = (steps.levels[1:] + steps.levels[:-1]) / 2
    network = TwoLayer(k * group.order, width, group.order, activation=f"power-{k}")
    record = gradient_flow(
        group_composition(group, x, sequence_length=k),
        network.with_neurons(neurons_near_irreps(group, x, k, neurons=width, seed=seed)),
        GradientFlow(
            duration=1.2 * float(steps.times[-1]), normalised=True, save=1500, loss_target=0.5 * float(middles[-1])
        ),
        scale=scales,
    )
    losses, times = record["loss"].to_numpy(), record["time"].to_numpy()
    crossings = [np.interp(-middles, -loss, times) for loss in losses]
    slopes = (crossings[1] - crossings[0]) / np.log(scales[0] / scales[1])
    plateaus = np.abs(losses[-1][:, None] - steps.levels[1:-1]).min(axis=0) / steps.levels[0]
    return steps, slopes, plateaus


@pytest.mark.slow
def test_the_normalised_flow_follows_the_staircase():
    group = dihedral(7)
    x = encoding_from_fourier(group, {"2d-1": 2.6, "2d-2": 2.0, "sign": 1.3})
    steps, slopes, plateaus = slopes_and_plateaus(group, x, 2, 90, [1e-5, 1e-7])
    assert not any(steps.slow)
    # Corrections are powers of the scale, and the times are interpolated between 1500.
    np.testing.assert_allclose(slopes, steps.accelerated_times, rtol=1e-3)
    assert plateaus.max() < 1e-6


@pytest.mark.slow
def test_a_coupled_irrep_comes_a_little_early():
    x = encoding_from_fourier(dihedral(3), {"sign": 1.2, "2d": 2.2})
    steps, slopes, plateaus = slopes_and_plateaus(dihedral(3), x, 2, 48, [1e-5, 1e-7])
    assert steps.slow[0] == ""
    assert "2d" in steps.slow[1]
    assert "sign" in steps.slow[1]
    assert slopes[0] == pytest.approx(steps.accelerated_times[0], rel=1e-3)
    assert 0.95 < slopes[1] / steps.accelerated_times[1] < 0.999
    assert plateaus.max() < 1e-6


@pytest.mark.slow
def test_the_normalised_flow_follows_the_staircase_of_three_elements():
    x = waves(5, (1, 1, 0.4), (2, 0.6, -0.9))
    steps, slopes, plateaus = slopes_and_plateaus(cyclic(5), x, 3, 48, [1e-2, 1e-3])
    # At a scale of 1e-2 the corrections are still visible.
    np.testing.assert_allclose(slopes, steps.accelerated_times, rtol=3e-3)
    assert plateaus.max() < 1e-4


@pytest.mark.parametrize(
    ("x", "k", "scale", "message"),
    [
        (np.eye(5)[0], 2, 0.1, "mean 0.2: subtract the mean"),
        (waves(4, (1, 1, 0)), 2, 0.1, "encoding has shape"),
        (waves(5, (1, 1, 0)), 1, 0.1, "sequence_length is 1"),
        (waves(5, (1, 1, 0)), 2, 1.0, "below 1"),
        (waves(5, (1, 1, 0)), 2, -0.1, "scale is -0.1"),
    ],
)
def test_bad_input_is_refused(x, k, scale, message):
    with pytest.raises(InputError, match=message):
        composition_staircase(cyclic(5), x, k, scale=scale)
