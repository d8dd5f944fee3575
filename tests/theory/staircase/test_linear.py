from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from dynascope.errors import InputError
from dynascope.flows import linear_flow
from dynascope.results.steps_seen import crossing_times
from dynascope.tasks import Task
from dynascope.theory.staircase import linear_staircase

# Golden numbers are stored with 12 digits.
GOLDEN = 1e-11

CROSS = np.array([[2.0, 0.3, -0.1], [0.2, 1.2, 0.25], [0.1, -0.3, 0.7]])
CORRELATED = np.array([[1.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 0.6]])
POWER = {"whitened": 6.3325, "correlated": 6.478851091142489}
MOMENT = {"whitened": np.eye(3), "correlated": CORRELATED}

seeds = st.integers(0, 10**6)


def random_problem(seed, *, outputs=3, inputs=4, width=6):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(20, inputs)) * np.linspace(1, 2, inputs)
    y = x @ draw.normal(size=(inputs, outputs)) + 0.3 * draw.normal(size=(20, outputs))
    start = {"first": draw.normal(size=(inputs, width)), "second": draw.normal(size=(width, outputs))}
    return Task(x, y), start


def moments(task):
    return task.cross_moment, task.input_moment, task.target_power


def task_with(cross, moment, power):
    """Data of exactly these moments: the columns of a square root of the joint second moment."""
    joint = np.block([[moment, cross.T], [cross, np.zeros((len(cross),) * 2)]])
    size = len(moment)
    unexplained = power - np.trace(cross @ np.linalg.solve(moment, cross.T))
    explained = cross @ np.linalg.solve(moment, cross.T)
    joint[size:, size:] = explained + max(unexplained, 0.0) / len(cross) * np.eye(len(cross))
    values, vectors = np.linalg.eigh(joint)
    rows = np.sqrt(len(joint)) * (vectors * np.sqrt(np.maximum(values, 0))).T
    return Task(rows[:, :size], rows[:, size:])


def half_loss_times(cross, moment, power, first, second, scale, middles, duration):
    """Integrate the weights themselves, and find where the loss passes each value."""
    (inputs, width), outputs = first.shape, second.shape[1]

    def layers(weights):
        return weights[: inputs * width].reshape(inputs, width), weights[inputs * width :].reshape(width, outputs)

    def velocity(_, weights):
        a, b = layers(weights)
        residual = cross - (a @ b).T @ moment
        return np.concatenate([(b @ residual).T.ravel(), (residual @ a).T.ravel()])

    start = scale * np.concatenate([first.ravel(), second.ravel()])
    path = solve_ivp(velocity, (0, duration), start, "DOP853", rtol=1e-12, atol=1e-30, dense_output=True).sol

    def loss(time):
        a, b = layers(path(time))
        learned = (a @ b).T
        return (power - 2 * np.sum(learned * cross) + np.sum(learned @ moment * learned)) / 2

    grid = np.linspace(0, duration, 1500)
    values = np.array([loss(time) for time in grid])
    below = [int(np.argmax(values < middle)) for middle in middles]
    return np.array(
        [
            brentq(lambda t, m=middle: loss(t) - m, grid[k - 1], grid[k])
            for k, middle in zip(below, middles, strict=True)
        ]
    )


@pytest.mark.parametrize(
    ("kind", "times", "levels", "values"),
    [
        (
            "whitened",
            [0.482456785599, 0.850436508429, 1.343946947835],
            [3.16625, 1.01815657227, 0.326825283709, 0.05],
            [2.072724500617, 1.175866734423, 0.744076990249],
        ),
        (
            "correlated",
            [0.482456785599, 0.822576936783, 1.2395238943],
            [3.239425545571, 1.092662417438, 0.410201930452, 0.05],
            [2.072082589152, 1.168298324047, 0.848766081381],
        ),
    ],
)
def test_golden_staircases(kind, times, levels, values):
    steps = linear_staircase(CROSS, MOMENT[kind], POWER[kind], scale=1e-6)
    np.testing.assert_allclose(steps.accelerated_times, times, GOLDEN)
    np.testing.assert_allclose(steps.times, np.log(1e6) * np.array(times), GOLDEN)
    np.testing.assert_allclose(steps.levels, levels, GOLDEN)
    np.testing.assert_allclose(steps.features["singular_value"][1], values, GOLDEN)
    assert ("independent" in steps.theory) == (kind == "whitened")
    assert steps.warnings == ()
    assert steps.slow == ("",) * 3


def test_first_map_is_the_golden_rank_one_regression():
    steps = linear_staircase(CROSS, CORRELATED, POWER["correlated"], scale=1e-6)
    first = np.outer(steps.features["output_feature"][1][0], steps.features["learned_map"][1][0])
    np.testing.assert_allclose(first[0], [2.15718618571, -0.348221485321, -0.704544227056], GOLDEN)
    np.testing.assert_allclose(first[1], [-0.081928175476, 0.013225168575, 0.026758016275], 1e-10)


@pytest.fixture(scope="module")
def commuting():
    """Modes of strength 2, 1.5, 0.6 with powers 4, 1, 0.5: the first learned is not the best rank-one map."""
    draw = np.random.default_rng(4)
    left, _ = np.linalg.qr(draw.normal(size=(3, 3)))
    right, _ = np.linalg.qr(draw.normal(size=(3, 3)))
    cross = (left * [2.0, 1.5, 0.6]) @ right.T
    return cross, (right * [4.0, 1.0, 0.5]) @ right.T, 2 * 1.985, left, right


def test_commuting_golden(commuting):
    *problem, left, right = commuting
    steps = linear_staircase(*problem, scale=1e-6)
    np.testing.assert_allclose(steps.accelerated_times, [0.5, 2 / 3, 5 / 3], 1e-12)
    np.testing.assert_allclose(steps.levels, [1.985, 1.485, 0.36, 0.0], atol=1e-12)
    overlap = np.abs(steps.features["output_feature"][1] @ left)
    np.testing.assert_allclose(overlap, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(np.abs(steps.features["input_feature"][1] @ right), np.eye(3), atol=1e-12)


@pytest.mark.slow
def test_flow_learns_commuting_modes_in_the_order_of_growth_and_not_of_explained_loss(commuting):
    cross, moment, power, *_ = commuting
    draw = np.random.default_rng(0)
    start = {"first": draw.normal(size=(3, 4)), "second": draw.normal(size=(4, 3))}
    steps = linear_staircase(cross, moment, power, scale=1e-12, **start)
    curve = linear_flow(task_with(cross, moment, power), *start.values(), scale=1e-12, duration=60.0)
    middle_of_plateau = float(steps.times[:2].mean())
    # The best map of rank one would leave a loss of 0.86.
    np.testing.assert_allclose(np.interp(middle_of_plateau, curve["time"], curve["loss"]), 1.485, atol=1e-3)
    seen = crossing_times(
        curve["time"].to_numpy(), curve["loss"].to_numpy(), (steps.levels[1:] + steps.levels[:-1]) / 2
    )
    np.testing.assert_allclose(steps.times, seen, rtol=1e-3)


@pytest.fixture(scope="module")
def observed_slopes():
    """dt/dlog(1/scale) of each jump between scales 1e-12 and 1e-15, where the limit is almost reached."""
    slopes = {}
    for kind in POWER:
        draw = np.random.default_rng(7)
        start = draw.normal(size=(3, 4)) / 2, draw.normal(size=(4, 3)) / 2
        task = task_with(CROSS, MOMENT[kind], POWER[kind])
        levels = linear_staircase(*moments(task), scale=1e-12).levels
        curves = [linear_flow(task, *start, scale=scale, duration=60.0) for scale in (1e-12, 1e-15)]
        early, late = (
            crossing_times(curve["time"].to_numpy(), curve["loss"].to_numpy(), (levels[1:] + levels[:-1]) / 2)
            for curve in curves
        )
        slopes[kind] = (late - early) / np.log(1e3)
    return slopes


@pytest.mark.slow
def test_observed_slopes_are_the_golden_ones(observed_slopes):
    np.testing.assert_allclose(observed_slopes["whitened"], [0.482457, 0.850436, 1.343947], rtol=2e-6)
    # The third has not converged, so that it still depends on the start.
    np.testing.assert_allclose(observed_slopes["correlated"][:2], [0.482457, 0.822518], rtol=1e-5)
    np.testing.assert_allclose(observed_slopes["correlated"][2], 1.241617, rtol=1e-3)


@pytest.mark.slow
def test_accelerated_times_are_the_limit_of_observed_slopes(observed_slopes):
    for kind, power in POWER.items():
        steps = linear_staircase(CROSS, MOMENT[kind], power, scale=1e-12)
        # 0.17 % is what the third jump of the correlated problem is still away from its limit.
        np.testing.assert_allclose(observed_slopes[kind], steps.accelerated_times, rtol=2e-3)


@pytest.mark.parametrize("seed", [0, 1])
def test_whitened_times_agree_with_direct_integration(seed):
    draw = np.random.default_rng(seed)
    first, second = draw.normal(size=(3, 4)) / 2, draw.normal(size=(4, 3)) / 2
    for cross, power, tolerance in (
        # Strengths a factor of two and less apart: neighbours overlap a little.
        (CROSS, 6.3325, 3e-6),
        # A factor of four apart: what remains is the tolerance of the integration.
        (np.diag([4.0, 1.0, 0.25]), 17.2, 1e-9),
    ):
        steps = linear_staircase(cross, np.eye(3), power, scale=1e-6, first=first, second=second)
        middles = (steps.levels[1:] + steps.levels[:-1]) / 2
        seen = half_loss_times(
            cross, np.eye(3), power, first, second, 1e-6, middles, duration=1.1 * float(steps.times[-1]) + 2
        )
        np.testing.assert_allclose(steps.times, seen, rtol=tolerance)


def test_correlated_times_agree_with_direct_integration_up_to_a_bounded_offset():
    draw = np.random.default_rng(2)
    first, second = draw.normal(size=(3, 4)) / 2, draw.normal(size=(4, 3)) / 2
    offsets = []
    for scale in (1e-4, 1e-8):
        steps = linear_staircase(CROSS, CORRELATED, POWER["correlated"], scale=scale, first=first, second=second)
        middles = (steps.levels[1:] + steps.levels[:-1]) / 2
        duration = 1.1 * float(steps.times[-1]) + 3
        seen = half_loss_times(CROSS, CORRELATED, POWER["correlated"], first, second, scale, middles, duration)
        offsets.append(steps.times - seen)
    # The first drop is a logistic that only its own direction shapes; later ones start while the map still turns.
    assert np.all(np.abs(offsets) < [0.02, 0.15, 1.0])
    np.testing.assert_allclose(offsets[1], offsets[0], rtol=0, atol=0.15)


def test_initial_weights_shift_times_but_not_the_limit():
    task, start = random_problem(3)
    with_start = [linear_staircase(*moments(task), scale=scale, **start) for scale in (1e-200, 1e-300)]
    slopes = (with_start[1].times - with_start[0].times) / np.log(1e100)
    np.testing.assert_allclose(slopes, with_start[0].accelerated_times, rtol=1e-9)


@given(seeds)
def test_levels_are_the_losses_of_the_learned_maps(seed):
    task, _ = random_problem(seed)
    steps = linear_staircase(*moments(task), scale=1e-6)
    left, maps = steps.features["output_feature"][1], steps.features["learned_map"][1]
    learned = np.cumsum(left[:, :, None] * maps[:, None, :], axis=0)
    losses = [np.sum((task.inputs @ each.T - task.targets) ** 2) / (2 * task.samples) for each in learned]
    np.testing.assert_allclose(steps.levels, [task.target_power / 2, *losses], rtol=1e-9)


@given(seeds)
def test_last_level_is_least_squares(seed):
    task, _ = random_problem(seed)
    residual = np.linalg.lstsq(task.inputs, task.targets, rcond=None)[1]
    steps = linear_staircase(*moments(task), scale=1e-6)
    np.testing.assert_allclose(steps.levels[-1], residual.sum() / (2 * task.samples), rtol=1e-9)


@given(seeds)
def test_log_amplitudes_keep_their_order(seed):
    # Each jump spends one unit of log-amplitude: Σ_{l<j} σ_{j−l}(M_l) Δτ_l = 1.
    task, _ = random_problem(seed)
    steps = linear_staircase(*moments(task), scale=1e-6)
    left = steps.features["output_feature"][1]
    residuals = [task.cross_moment - left[:k].T @ left[:k] @ task.cross_moment for k in range(len(left))]
    growth = np.array([np.linalg.svd(residual, compute_uv=False) for residual in residuals])
    waits = np.diff(steps.accelerated_times, prepend=0.0)
    spent = [sum(growth[step, j - step] * waits[step] for step in range(j + 1)) for j in range(len(left))]
    np.testing.assert_allclose(spent, 1, rtol=1e-9)


@given(seeds)
def test_orthogonal_changes_of_inputs_and_outputs_leave_the_staircase(seed):
    task, start = random_problem(seed)
    steps = linear_staircase(*moments(task), scale=1e-9, **start)
    assume(np.diff(steps.features["singular_value"][1]).max() < -1e-3)
    draw = np.random.default_rng(seed + 1)
    turn_in, _ = np.linalg.qr(draw.normal(size=(4, 4)))
    turn_out, _ = np.linalg.qr(draw.normal(size=(3, 3)))
    turned = linear_staircase(
        *moments(Task(task.inputs @ turn_in, task.targets @ turn_out)),
        scale=1e-9,
        first=turn_in.T @ start["first"],
        second=start["second"] @ turn_out,
    )
    # Rounding in the eigenbases, times what a start close to missing a mode makes of it.
    np.testing.assert_allclose(turned.times, steps.times, rtol=1e-6)
    np.testing.assert_allclose(turned.accelerated_times, steps.accelerated_times, rtol=1e-9)
    np.testing.assert_allclose(turned.levels, steps.levels, rtol=1e-9)
    for name, turn in (("learned_map", turn_in), ("output_feature", turn_out)):
        before, after = steps.features[name][1], turned.features[name][1]
        np.testing.assert_allclose(np.abs(np.sum(before @ turn * after, axis=1)), np.sum(before**2, axis=1), rtol=1e-6)


@given(seeds, st.floats(0.1, 10))
def test_larger_targets_are_learned_sooner(seed, factor):
    task, start = random_problem(seed)
    scaled = Task(task.inputs, factor * task.targets)
    steps, faster = (linear_staircase(*moments(each), scale=1e-9) for each in (task, scaled))
    np.testing.assert_allclose(faster.levels, factor**2 * steps.levels, rtol=1e-9)
    np.testing.assert_allclose(faster.accelerated_times, steps.accelerated_times / factor, rtol=1e-9)
    # θ → √factor θ, t → t/factor maps one flow on the other.
    steps = linear_staircase(*moments(task), scale=1e-9, **start)
    faster = linear_staircase(*moments(scaled), scale=1e-9 * np.sqrt(factor), **start)
    np.testing.assert_allclose(faster.times, steps.times / factor, rtol=1e-6)


@given(seeds)
def test_rotating_neurons_changes_nothing(seed):
    task, start = random_problem(seed)
    turn, _ = np.linalg.qr(np.random.default_rng(seed + 1).normal(size=(6, 6)))
    steps = linear_staircase(*moments(task), scale=1e-9, **start)
    assume(np.diff(steps.features["singular_value"][1]).max() < -1e-3)
    turned = linear_staircase(*moments(task), scale=1e-9, first=start["first"] @ turn, second=turn.T @ start["second"])
    np.testing.assert_allclose(turned.times, steps.times, rtol=1e-6)


@pytest.mark.parametrize("kind", POWER)
def test_inputs_without_variance_change_nothing(kind):
    draw = np.random.default_rng(5)
    start = {"first": draw.normal(size=(3, 4)), "second": draw.normal(size=(4, 3))}
    steps = linear_staircase(CROSS, MOMENT[kind], POWER[kind], scale=1e-6, **start)
    turn, _ = np.linalg.qr(draw.normal(size=(5, 5)))
    cross = np.hstack([CROSS, np.zeros((3, 2))]) @ turn
    moment = turn.T @ np.block([[MOMENT[kind], np.zeros((3, 2))], [np.zeros((2, 5))]]) @ turn
    start["first"] = turn.T @ np.vstack([start["first"], draw.normal(size=(2, 4))])
    wider = linear_staircase(cross, moment, POWER[kind], scale=1e-6, **start)
    np.testing.assert_allclose(wider.times, steps.times, rtol=1e-9)
    np.testing.assert_allclose(wider.levels, steps.levels, rtol=1e-9)
    np.testing.assert_allclose((wider.features["learned_map"][1] @ turn.T)[:, 3:], 0, atol=1e-12)


@pytest.mark.parametrize("kind", POWER)
@pytest.mark.parametrize("width", [1, 2, 3, 30])
def test_jumps_stop_at_the_width(kind, width):
    draw = np.random.default_rng(6)
    start = {"first": draw.normal(size=(3, width)), "second": draw.normal(size=(width, 3))}
    steps = linear_staircase(CROSS, MOMENT[kind], POWER[kind], scale=1e-6, **start)
    full = linear_staircase(CROSS, MOMENT[kind], POWER[kind], scale=1e-6)
    count = min(width, 3)
    assert len(steps.times) == len(steps.learned) == len(steps.slow) == count
    np.testing.assert_allclose(steps.levels, full.levels[: count + 1])
    np.testing.assert_allclose(steps.accelerated_times, full.accelerated_times[:count])


@pytest.mark.parametrize("kind", POWER)
def test_copies_of_a_neuron_and_dead_neurons_learn_nothing_more(kind):
    draw = np.random.default_rng(8)
    one = draw.normal(size=(3, 1)), draw.normal(size=(1, 3))
    # Four copies are one neuron of twice the size.
    alone = linear_staircase(CROSS, MOMENT[kind], POWER[kind], scale=2e-6, first=one[0], second=one[1])
    copies = linear_staircase(
        CROSS, MOMENT[kind], POWER[kind], scale=1e-6, first=np.repeat(one[0], 4, 1), second=np.repeat(one[1], 4, 0)
    )
    np.testing.assert_allclose(copies.times, alone.times, rtol=1e-12)
    padded = linear_staircase(
        CROSS,
        MOMENT[kind],
        POWER[kind],
        scale=2e-6,
        first=np.pad(one[0], ((0, 0), (0, 3))),
        second=np.pad(one[1], ((0, 3), (0, 0))),
    )
    np.testing.assert_allclose(padded.times, alone.times, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", POWER)
def test_neurons_of_very_different_size_are_predicted_as_they_are_trained(kind):
    draw = np.random.default_rng(9)
    sizes = np.exp([0.0, -12.0, -3.0, -8.0])
    first, second = draw.normal(size=(3, 4)) * sizes, draw.normal(size=(4, 3)) * sizes[:, None]
    steps = linear_staircase(CROSS, MOMENT[kind], POWER[kind], scale=1e-6, first=first, second=second)
    task = task_with(CROSS, MOMENT[kind], POWER[kind])
    curve = linear_flow(task, first, second, scale=1e-6, duration=1.2 * float(steps.times[-1]))
    seen = crossing_times(
        curve["time"].to_numpy(), curve["loss"].to_numpy(), (steps.levels[1:] + steps.levels[:-1]) / 2
    )
    # Correlated inputs shift later times by an offset that the theory leaves open.
    np.testing.assert_allclose(steps.times, seen, rtol=1e-4 if kind == "whitened" else 0.05)


@pytest.mark.parametrize("kind", POWER)
def test_smallest_scale_gives_finite_times(kind):
    draw = np.random.default_rng(10)
    start = {"first": draw.normal(size=(3, 4)), "second": draw.normal(size=(4, 3))}
    steps = linear_staircase(CROSS, MOMENT[kind], POWER[kind], scale=1e-300, **start)
    # 690 e-folds of growth, up to an offset of order one.
    np.testing.assert_allclose(steps.times, np.log(1e300) * steps.accelerated_times, rtol=5e-3)


def test_equally_strong_modes_warn():
    repeated = linear_staircase(np.diag([2.0, 2.0, 1.0]), np.eye(3), 9.0, scale=1e-6)
    assert ["1 and 2" in warning for warning in repeated.warnings] == [True]
    # Equal strength after whitening leaves the levels to the start even where the growth differs.
    right, _ = np.linalg.qr(np.random.default_rng(12).normal(size=(3, 3)))
    equal = linear_staircase(
        np.diag([2.0, 2.0, 1.0]) @ right * [1.0, 2.0, 3.0], np.diag([1.0, 4.0, 9.0]), 9.0, scale=1e-6
    )
    assert equal.accelerated_times[1] > 1.1 * equal.accelerated_times[0]
    assert any("1 and 2" in warning for warning in equal.warnings)


def test_equally_strong_modes_with_different_powers_are_still_independent():
    # Any basis of the repeated singular value is a singular basis; only one of them diagonalises Σxx.
    draw = np.random.default_rng(11)
    right, _ = np.linalg.qr(draw.normal(size=(2, 2)))
    steps = linear_staircase(2 * np.eye(2), (right * [1.0, 4.0]) @ right.T, 5.0, scale=1e-6)
    assert "independent" in steps.theory
    np.testing.assert_allclose(sorted(-np.diff(steps.levels)), [0.5, 2.0])


def test_nearly_independent_modes_warn():
    moment = np.array([[4.0, 1e-4], [1e-4, 1.0]])
    steps = linear_staircase(np.diag([2.0, 1.5]), moment, 4.0, scale=1e-6)
    assert "independent" not in steps.theory
    assert any("nearly independent" in warning for warning in steps.warnings)
    assert not linear_staircase(np.diag([2.0, 1.5]), np.diag([4.0, 1.0]), 4.0, scale=1e-6).warnings


def test_large_start_and_merging_jumps_warn():
    start = {"first": np.eye(2), "second": np.eye(2)}
    large = linear_staircase(np.diag([2.0, 1.0]), np.eye(2), 5.0, scale=0.5, **start)
    assert any("not small" in warning for warning in large.warnings)
    lead = {"first": np.diag([1e-3, 1.0]), "second": np.diag([1e-3, 1.0])}
    merged = linear_staircase(np.diag([1.01, 1.0]), np.eye(2), 2.1, scale=1e-6, **lead)
    assert any("1 and 2" in warning for warning in merged.warnings)
    assert not linear_staircase(np.diag([1.01, 1.0]), np.eye(2), 2.1, scale=1e-6, **start).warnings


def test_bad_arguments_are_named():
    def attempt(cross=CROSS, moment=CORRELATED, power=7.0, scale=1e-6, **start):
        with pytest.raises(InputError) as caught:
            linear_staircase(cross, moment, power, scale=scale, **start)
        return caught.value.argument

    assert attempt(cross=np.full((3, 3), np.nan)) == "cross_moment"
    assert attempt(cross=np.zeros((3, 3))) == "cross_moment"
    assert attempt(moment=-np.eye(3)) == "input_moment"
    assert attempt(moment=np.zeros((3, 3))) == "input_moment"
    assert attempt(moment=np.diag([1.0, 1.0, -0.1])) == "input_moment"
    # Covariance with an input that does not vary.
    assert attempt(moment=np.diag([1.0, 1.0, 0.0])) == "cross_moment"
    assert attempt(power=0.0) == "target_power"
    assert attempt(power=float("inf")) == "target_power"
    # The inputs would explain more than there is.
    assert attempt(power=6.0) == "target_power"
    assert [attempt(scale=scale) for scale in (0.0, -1e-3, 1.0, 2.0, float("nan"))] == ["scale"] * 5
    assert attempt(first=np.ones((3, 2))) == "second"
    assert attempt(second=np.ones((2, 3))) == "first"
    assert attempt(first=np.zeros((3, 2)), second=np.zeros((2, 3))) == "first"


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("argument", "shapes"),
    [
        ("input_moment", {"moment": (2, 2)}),
        ("input_moment", {"moment": (3,)}),
        ("first", {"first": (2, 4)}),
        ("second", {"second": (3, 3)}),
        ("second", {"second": (4, 2)}),
    ],
)
def test_arrays_of_other_shapes_are_named(argument, shapes):
    moment, first, second = (
        np.ones(shapes.get(name, usual)) for name, usual in (("moment", (3, 3)), ("first", (3, 4)), ("second", (4, 3)))
    )
    moment = CORRELATED if "moment" not in shapes else moment
    with pytest.raises(InputError) as caught:
        linear_staircase(CROSS, moment, 7.0, scale=1e-6, first=first, second=second)
    assert caught.value.argument == argument


@pytest.mark.parametrize("moment", [np.eye(2), np.array([[1.0, 0.3], [0.3, 1.0]])])
def test_start_that_misses_a_mode_is_refused(moment):
    # Without input weights and output weights along the first coordinates, the flow never leaves their zero.
    cross = np.diag([2.0, 1.0]) @ moment
    start = {"first": np.array([[0.0, 0.0], [1.0, 0.5]]), "second": np.array([[0.0, 0.5], [0.0, 1.0]])}
    if moment[0, 1] == 0:
        with pytest.raises(InputError, match="no component along one of the modes"):
            linear_staircase(cross, moment, 10.0, scale=1e-6, **start)
    else:
        # Correlated inputs pass the growth on.
        assert np.isfinite(linear_staircase(cross, moment, 10.0, scale=1e-6, **start).times).all()


def test_each_jump_says_its_rank():
    steps = linear_staircase(CROSS, CORRELATED, POWER["correlated"], scale=1e-6)
    assert all(phrase.startswith(f"rank {k}") for k, phrase in enumerate(steps.learned, start=1))
    assert all(later > earlier for earlier, later in itertools.pairwise(steps.times))


@pytest.mark.slow
def test_loss_is_near_its_plateau_after_the_settling_time():
    draw = np.random.default_rng(1)
    turn, _ = np.linalg.qr(draw.normal(size=(3, 3)))
    moment = (turn * [1.0, 0.1, 0.02]) @ turn.T
    rows, _ = np.linalg.qr(draw.normal(size=(3, 3)))
    cross = np.diag([1.0, 0.2, 0.1]) @ rows.T @ moment
    power = 1.001 * np.trace(cross @ np.linalg.solve(moment, cross.T))
    start = {"first": draw.normal(size=(3, 4)), "second": draw.normal(size=(4, 3))}
    steps = linear_staircase(cross, moment, power, scale=1e-8, **start)
    settling = steps.features["settling_time"][1]
    curve = linear_flow(
        task_with(cross, moment, power), *start.values(), scale=1e-8, duration=1.5 * float(steps.times[-1])
    )
    time, loss = curve["time"].to_numpy(), curve["loss"].to_numpy()
    seen = crossing_times(time, loss, (steps.levels[1:] + steps.levels[:-1]) / 2)
    # Settled means two percent of the initial loss; the estimate is rough, so allow three, and one well before.
    assert np.all(np.interp(seen + settling, time, loss) - steps.levels[1:] < 0.03 * steps.levels[0])
    assert np.interp(seen[0] + settling[0] / 2, time, loss) - steps.levels[1] > 0.01 * steps.levels[0]
