from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import linprog

from dynascope.errors import InputError
from dynascope.flows import diagonal_flow
from dynascope.results.steps_seen import crossing_times
from dynascope.tasks import Task
from dynascope.theory.staircase import diagonal_staircase

# Golden numbers are stored with 12 to 15 digits.
GOLDEN = 1e-11

A = (
    np.array([[1, -0.75, -0.15, -0.43], [0.85, 0.94, -0.97, -0.96], [-0.99, 0.96, 0.7, -0.15]]),
    np.array([-0.39, -1.15, 1.98]),
)
A_TIMES = [0.90152357484148, 2.26711189270040, 4.70381533762842, 12.71530677967437]
A_LEVELS = [0.89916666666667, 0.21626950035768, 0.11543425308171, 0.02130584129321, 0.0]
A_MAPS = [
    [-1.23129578924, 0, 0, 0],
    [-0.494751523962, 0, 1.193753841884, 0],
    [0, 0.567153054265, 1.811062738274, 0],
    [0, 0.413381143319, 2.141424684435, -0.561045488731],
]
A_INTEGRALS = [
    [-1, 0.334254890765, 0.769300117198, 0.292905009466],
    [-1, 0.335351902264, 1, 0.121456703168],
    [-1, 1, 1, -0.391523259292],
    [-0.456610233587, 1, 1, -1],
]
B = (
    np.array([[0.31, -0.53, 0.57, -0.44, 0.11], [0.89, 0.31, -0.26, -0.6, -0.74], [0.39, -0.99, 0.32, 0.56, -0.97]]),
    np.array([-1.38, 0.99, -0.55]),
)

seeds = st.integers(0, 10**6)


def random_data(seed, samples, inputs, correlation=0.0, noise=0.1):
    draw = np.random.default_rng(seed)
    distance = np.abs(np.subtract.outer(np.arange(inputs), np.arange(inputs)))
    covariance = np.where(distance == 0, 1.0, correlation**distance)
    x = draw.normal(size=(samples, inputs)) @ np.linalg.cholesky(covariance).T
    beta = np.zeros(inputs)
    relevant = min(4, inputs)
    beta[draw.permutation(inputs)[:relevant]] = draw.choice([-1.0, 1.0], relevant) * 2.0 ** -np.arange(relevant)
    return x, x @ beta + noise * draw.normal(size=samples)


def coefficients(steps):
    return steps.features["coefficient"][1]


def integrals(x, y, steps):
    """S after each jump, from the definition: the integral of the multipliers on the plateaus before."""
    maps = np.vstack([np.zeros(x.shape[1]), coefficients(steps)])
    multipliers = (y - maps[:-1] @ x.T) @ x / len(x)
    waits = np.diff(steps.accelerated_times, prepend=0.0)
    return np.cumsum(multipliers * waits[:, None], axis=0)


def by_enumeration(gram, cross, on_boundary, signs):
    """The constrained least squares of all supports, of which the optimality conditions hold for one."""
    candidates = np.flatnonzero(on_boundary)
    for size in range(len(candidates) + 1):
        for support in itertools.combinations(candidates, size):
            beta = np.zeros(len(cross))
            chosen = list(support)
            beta[chosen] = np.linalg.lstsq(gram[np.ix_(chosen, chosen)], cross[chosen], rcond=None)[0]
            push = (cross - gram @ beta) * signs
            if np.all(beta[chosen] * signs[chosen] > 0) and np.all(push[candidates] <= 1e-9):
                return beta
    raise AssertionError("no support is optimal")


def by_pivoting(gram, cross, on_boundary, signs, support):
    """Exchange every coordinate of the wrong sign until none is left; one at a time where that cycles."""
    support = support.copy()
    for attempt in range(1000):
        chosen = np.flatnonzero(support)
        beta = np.zeros(len(cross))
        beta[chosen] = np.linalg.lstsq(gram[np.ix_(chosen, chosen)], cross[chosen], rcond=None)[0]
        wrong = (support & (beta * signs < 0)) | (~support & on_boundary & ((cross - gram @ beta) * signs > 1e-9))
        if not wrong.any():
            return beta
        if attempt > 20:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        support ^= wrong
    raise AssertionError("the exchange cycles")


def successive_saddles(x, y, *, enumerate_supports):
    """The path of successive saddles from the moments alone."""
    gram, cross = x.T @ x / len(x), x.T @ y / len(x)
    position, beta, clock = np.zeros(len(cross)), np.zeros(len(cross)), 0.0
    times, maps = [], []
    while True:
        velocity = cross - gram @ beta
        velocity[np.abs(velocity) < 1e-9] = 0.0
        velocity[beta != 0] = 0.0
        if not velocity.any():
            return np.array(times), np.array(maps)
        # The wall ahead of each coordinate is +1 or −1.
        with np.errstate(divide="ignore", invalid="ignore"):
            arrival = np.where(velocity != 0, (np.sign(velocity) - position) / velocity, np.inf)
        first = int(np.argmin(arrival))
        clock += arrival[first]
        position = position + arrival[first] * velocity
        position[first] = np.sign(velocity[first])
        walls = np.abs(position) > 1 - 1e-9
        if enumerate_supports:
            beta = by_enumeration(gram, cross, walls, np.sign(position))
        else:
            support = beta != 0
            support[first] = True
            beta = by_pivoting(gram, cross, walls, np.sign(position), support)
        times.append(clock)
        maps.append(beta)


def test_golden_path():
    steps = diagonal_staircase(*A, scale=1e-8)
    np.testing.assert_allclose(steps.accelerated_times, A_TIMES, GOLDEN)
    np.testing.assert_allclose(steps.levels, A_LEVELS, rtol=0, atol=1e-13)
    np.testing.assert_allclose(coefficients(steps), A_MAPS, rtol=0, atol=1e-11)
    np.testing.assert_allclose(integrals(*A, steps), A_INTEGRALS, rtol=0, atol=1e-11)
    assert [re.findall(r"x\d", each) for each in steps.learned] == [["x1"], ["x3"], ["x2", "x1"], ["x4"]]


def test_golden_path_on_which_an_input_leaves_and_returns():
    steps = diagonal_staircase(*B, scale=1e-8)
    times = [1.89537528430629, 3.59676160187160, 4.42436312322589, 6.66736264529865]
    levels = [0.53116666666667, 0.22349395279149, 0.02992062369502, 0.00344595700728, 0.0]
    np.testing.assert_allclose(steps.accelerated_times, times, GOLDEN)
    np.testing.assert_allclose(steps.levels, levels, rtol=0, atol=1e-13)
    assert [np.flatnonzero(beta).tolist() for beta in coefficients(steps)] == [[1], [2], [2, 4], [1, 2, 4]]
    # The input that left is only 0.039 inside its boundary, which at any usual scale keeps the plateaus from settling.
    assert any("x2" in reason for reason in steps.slow)


@pytest.mark.parametrize("samples", [3, 6, 40])
@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_the_enumeration_of_all_supports(samples, seed):
    x, y = random_data(seed, samples, 6, correlation=0.6, noise=0.5)
    steps = diagonal_staircase(x, y, scale=1e-8)
    times, maps = successive_saddles(x, y, enumerate_supports=True)
    np.testing.assert_allclose(steps.accelerated_times, times, rtol=1e-6)
    np.testing.assert_allclose(coefficients(steps), maps, rtol=0, atol=1e-6)


@pytest.mark.parametrize("correlation", [0.0, 0.7])
@pytest.mark.parametrize(
    ("samples", "inputs"), [(30, 10), (6, 10), pytest.param(300, 100, marks=pytest.mark.slow), (40, 100)]
)
def test_agrees_with_an_independent_active_set_path(samples, inputs, correlation):
    for seed in range(3 if inputs == 10 else 1):
        x, y = random_data(seed, samples, inputs, correlation)
        steps = diagonal_staircase(x, y, scale=1e-8)
        times, maps = successive_saddles(x, y, enumerate_supports=False)
        np.testing.assert_allclose(steps.accelerated_times, times, rtol=1e-6)
        np.testing.assert_allclose(coefficients(steps), maps, rtol=0, atol=1e-6)


@given(seeds, st.integers(1, 30), st.integers(1, 20), st.sampled_from([0.0, 0.5, 0.9]))
def test_path_satisfies_the_conditions_that_define_it(seed, samples, inputs, correlation):
    x, y = random_data(seed, max(samples, 2), inputs, correlation, noise=0.5)
    steps = diagonal_staircase(x, y, scale=1e-8)
    maps, walls = coefficients(steps), integrals(x, y, steps)
    multipliers = (y - maps @ x.T) @ x / len(x)
    largest = np.abs(x.T @ y).max() / len(x)
    # Over long waits for tiny multipliers their round-off adds up in S until a wall is hard to tell.
    assume(largest * steps.accelerated_times[-1] < 1e3)
    small = 1e-9
    assert np.all(np.abs(walls) <= 1 + small)
    active = maps != 0
    np.testing.assert_allclose(walls[active], np.sign(maps[active]), rtol=0, atol=small)
    np.testing.assert_allclose(multipliers[active], 0, atol=1e-8 * largest)
    on_wall = np.abs(walls) >= 1 - small
    assert np.all((multipliers * np.sign(walls))[on_wall & ~active] <= 1e-8 * largest)
    # Something hits a wall at every jump, and nothing is left to push at the end.
    before = np.vstack([np.zeros(inputs), walls[:-1]])
    assert np.all(np.any(on_wall & (np.abs(walls - before) > 0), axis=1))
    np.testing.assert_allclose(multipliers[-1], 0, atol=1e-8 * largest)


@given(seeds, st.integers(2, 20), st.integers(1, 15))
def test_every_jump_lowers_the_loss_and_changes_the_active_inputs(seed, samples, inputs):
    x, y = random_data(seed, samples, inputs, correlation=0.5, noise=0.5)
    steps = diagonal_staircase(x, y, scale=1e-8)
    signs = np.sign(np.vstack([np.zeros(inputs), coefficients(steps)]))
    assert np.all(np.diff(steps.levels) < 0)
    assert np.all(np.any(np.diff(signs, axis=0) != 0, axis=1))
    assert np.all(np.diff(steps.accelerated_times) > 0)
    assert all("learns" in phrase for phrase in steps.learned)
    losses = np.sum((y - coefficients(steps) @ x.T) ** 2, axis=1) / (2 * samples)
    np.testing.assert_allclose(steps.levels, [y @ y / (2 * samples), *losses], rtol=0, atol=1e-12 * (y @ y))


@pytest.mark.parametrize("seed", range(5))
def test_ends_at_the_interpolator_of_smallest_l1_norm(seed):
    x, y = random_data(seed, 8, 20, correlation=0.3, noise=0.5)
    beta = coefficients(diagonal_staircase(x, y, scale=1e-8))[-1]
    program = linprog(np.ones(40), A_eq=np.hstack([x, -x]), b_eq=y, bounds=(0, None))
    np.testing.assert_allclose(beta, program.x[:20] - program.x[20:], atol=1e-9)


@given(seeds)
def test_ends_at_least_squares_without_an_interpolator(seed):
    x, y = random_data(seed, 30, 5, correlation=0.5, noise=1.0)
    beta = coefficients(diagonal_staircase(x, y, scale=1e-8))[-1]
    np.testing.assert_allclose(beta, np.linalg.lstsq(x, y, rcond=None)[0], rtol=0, atol=1e-10)


def test_inputs_leave_and_return_when_samples_are_few():
    left, returned = 0, 0
    for seed in range(6):
        steps = diagonal_staircase(*random_data(seed, 12, 40, correlation=0.5, noise=0.5), scale=1e-8)
        active = np.vstack([np.zeros(40, int), (coefficients(steps) != 0).astype(int)])
        left += int(np.sum(np.diff(active, axis=0) < 0))
        returned += int(np.sum(np.maximum(np.diff(active, axis=0), 0).sum(axis=0) > 1))
    # The data above must show what the other tests claim to cover.
    assert left > 10
    assert returned > 0


@given(seeds)
def test_order_and_signs_of_the_inputs_do_not_matter(seed):
    x, y = random_data(seed, 8, 12, correlation=0.5)
    draw = np.random.default_rng(seed + 1)
    order, signs = draw.permutation(12), draw.choice([-1.0, 1.0], 12)
    steps, turned = (diagonal_staircase(each, y, scale=1e-6) for each in (x, x[:, order] * signs))
    np.testing.assert_allclose(turned.accelerated_times, steps.accelerated_times, rtol=1e-7)
    np.testing.assert_allclose(turned.times, steps.times, rtol=1e-7)
    np.testing.assert_allclose(turned.levels, steps.levels, rtol=0, atol=1e-12)
    np.testing.assert_allclose(coefficients(turned), coefficients(steps)[:, order] * signs, rtol=0, atol=1e-9)


@given(seeds, st.floats(1e-3, 1e3))
def test_larger_targets_are_learned_sooner(seed, factor):
    x, y = random_data(seed, 8, 12, correlation=0.5)
    steps, scaled = diagonal_staircase(x, y, scale=1e-6), diagonal_staircase(x, factor * y, scale=1e-6)
    np.testing.assert_allclose(scaled.accelerated_times, steps.accelerated_times / factor, rtol=1e-7)
    np.testing.assert_allclose(scaled.levels, factor**2 * steps.levels, rtol=0, atol=1e-12 * factor**2)
    np.testing.assert_allclose(coefficients(scaled), factor * coefficients(steps), rtol=0, atol=1e-9 * factor)


@given(seeds)
def test_path_depends_on_the_data_only_through_its_moments(seed):
    x, y = random_data(seed, 9, 4, correlation=0.5, noise=0.5)
    turn, _ = np.linalg.qr(np.random.default_rng(seed + 1).normal(size=(9, 9)))
    steps, turned = diagonal_staircase(x, y, scale=1e-6), diagonal_staircase(turn @ x, turn @ y, scale=1e-6)
    twice = diagonal_staircase(np.vstack([x, x]), np.append(y, y), scale=1e-6)
    for other in (turned, twice):
        np.testing.assert_allclose(other.accelerated_times, steps.accelerated_times, rtol=1e-9)
        np.testing.assert_allclose(other.levels, steps.levels, rtol=0, atol=1e-12)


def midpoints(steps):
    return (steps.levels[1:] + steps.levels[:-1]) / 2


def flow_times(x, y, scale, middles, duration):
    curve = diagonal_flow(Task(x, y[:, None]), scale=scale, duration=duration)
    return crossing_times(curve["time"].to_numpy(), curve["loss"].to_numpy(), middles)


def integrated_times(x, y, scale, middles, duration):
    """Integrate u and v themselves."""
    inputs = x.shape[1]

    def velocity(_, weights):
        u, v = weights[:inputs], weights[inputs:]
        pull = x.T @ (y - x @ (u * v)) / len(x)
        return np.concatenate([v * pull, u * pull])

    start = np.concatenate([np.full(inputs, scale), np.zeros(inputs)])
    grid = np.linspace(0, duration, 40001)
    path = solve_ivp(velocity, (0, duration), start, "DOP853", grid, rtol=1e-11, atol=1e-18).y
    losses = np.sum((y[:, None] - x @ (path[:inputs] * path[inputs:])) ** 2, axis=0) / (2 * len(x))
    return crossing_times(grid, losses, middles)


def test_golden_times_at_finite_scale():
    # The table of t/λ in units of λ at 1e-4 is, rather, in units of ½ arccosh(α⁻²), where a weight reaches size one:
    # 0.9018, 2.1244, 4.9779, 11.656 there; direct integration gives these in units of λ = log(1/scale).
    unit = np.log(1e4)
    seen = integrated_times(*A, 1e-4, midpoints(diagonal_staircase(*A, scale=1e-4)), 14 * unit) / unit
    np.testing.assert_allclose(seen, [0.93588, 2.21026, 5.15494, 12.13375], rtol=1e-4)
    activation = np.arccosh(1e8) / 2
    # The threshold at which the table counted a jump is not known, which leaves a third of a percent.
    np.testing.assert_allclose(seen * unit / activation, [0.9018, 2.1244, 4.9779, 11.656], rtol=4e-3)


@pytest.mark.slow
def test_golden_slopes_and_plateaus():
    steps = diagonal_staircase(*A, scale=1e-10)
    earlier, later = (flow_times(*A, scale, midpoints(steps), -14 * np.log(scale)) for scale in (1e-10, 1e-12))
    slopes = (later - earlier) / np.log(1e2)
    np.testing.assert_allclose(slopes, [0.901515, 2.267122, 4.703823, 12.715246], rtol=2e-5)
    np.testing.assert_allclose(slopes, steps.accelerated_times, rtol=2e-5)
    curve = diagonal_flow(Task(A[0], A[1][:, None]), scale=1e-12, duration=14 * np.log(1e12))
    middles = (later[1:] + later[:-1]) / 2
    errors = np.interp(middles, curve["time"], curve["loss"]) - steps.levels[1:-1]
    np.testing.assert_allclose(np.abs(errors), [2.0e-4, 7e-7, 2e-8], rtol=0.3)


def test_slow_convergence_on_the_golden_path_is_flagged_until_it_is_over():
    flagged = {scale: [bool(reason) for reason in diagonal_staircase(*A, scale=scale).slow] for scale in (1e-6, 1e-12)}
    assert flagged == {1e-6: [False, True, True, False], 1e-12: [False] * 4}
    reasons = diagonal_staircase(*A, scale=1e-6).slow
    assert reasons[1].startswith("after it")
    assert reasons[2].startswith("before it")


@pytest.fixture(scope="module")
def slopes():
    """Predicted and observed slopes of random problems between 1e-8 and 1e-12.

    About one unflagged jump in a hundred is off by more than one percent, because of a short plateau long before it;
    none of these is.
    """
    predicted, observed, reasons = [], [], []
    for samples, correlation, noise, problem_seeds in (
        (100, 0.0, 0.1, [3]),
        (100, 0.5, 0.1, [2, 3]),
        (6, 0.0, 0.1, [1, 2, 3]),
        (8, 0.3, 0.5, [1, 2]),
    ):
        for seed in problem_seeds:
            x, y = random_data(seed, samples, 10, correlation, noise)
            steps = diagonal_staircase(x, y, scale=1e-8)
            duration = 2.2 * float(steps.times[-1])
            earlier, later = (flow_times(x, y, scale, midpoints(steps), duration) for scale in (1e-8, 1e-12))
            predicted.append(steps.accelerated_times)
            observed.append((later - earlier) / np.log(1e4))
            reasons.extend(steps.slow)
    return np.concatenate(predicted), np.concatenate(observed), reasons


@pytest.mark.slow
def test_slopes_agree_wherever_no_jump_is_flagged_slow(slopes):
    predicted, observed, reasons = slopes
    settled = np.array([not reason for reason in reasons])
    assert settled.sum() > 25
    np.testing.assert_allclose(observed[settled], predicted[settled], rtol=0.01)


@pytest.mark.slow
def test_jumps_off_by_more_are_flagged_with_a_reason(slopes):
    predicted, observed, reasons = slopes
    off = np.abs(observed / predicted - 1) > 0.01
    assert off.sum() > 5
    assert all("relaxation times" in reason or "its boundary" in reason for reason in itertools.compress(reasons, off))


@pytest.mark.slow
def test_times_of_uncorrelated_inputs_are_exact_at_small_scale():
    # Without correlations every coefficient is a logistic of its own.
    draw = np.random.default_rng(0)
    x = np.sqrt(8) * np.linalg.qr(draw.normal(size=(8, 4)))[0] * [1.0, 1.5, 0.7, 1.2]
    y = x @ [2.0, -0.6, 0.3, 0.1] + 0.2 * draw.normal(size=8)
    steps = diagonal_staircase(x, y, scale=1e-10)
    seen = flow_times(x, y, 1e-10, midpoints(steps), 1.3 * float(steps.times[-1]))
    np.testing.assert_allclose(steps.times, seen, rtol=1e-5)
    assert steps.slow == ("",) * 4


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-6, 1e-12])
def test_times_at_scale_are_close_where_nothing_is_slow(scale):
    for seed in range(3):
        x, y = random_data(seed, 100, 4, correlation=0.3)
        steps = diagonal_staircase(x, y, scale=scale)
        settled = np.array([not reason for reason in steps.slow])
        seen = flow_times(x, y, scale, midpoints(steps), 1.5 * float(steps.times[-1]))
        # What the theory leaves open is an offset of the time, worth 2.2 e-folds of growth.
        np.testing.assert_allclose(steps.times[settled], seen[settled], rtol=-2.2 / np.log(scale))


@given(seeds)
def test_times_at_scale_approach_the_limit(seed):
    # What they add to the limit is an offset, so that the slope against log(1/scale) is that of the limit.
    x, y = random_data(seed, 100, 5, correlation=0.5)
    early, late = (diagonal_staircase(x, y, scale=scale) for scale in (1e-150, 1e-300))
    # Unless the offsets make two jumps change places, which they cannot far apart.
    assume(np.min(np.diff(early.times) / early.times[1:]) > 0.1)
    slopes = (late.times - early.times) / np.log(1e150)
    np.testing.assert_allclose(slopes, late.accelerated_times, rtol=1e-9)


def test_names_of_inputs_are_used():
    steps = diagonal_staircase(np.eye(2), np.array([4.0, -1.0]), scale=1e-6, feature_names=["age", "height"])
    assert [each.split()[-1] for each in steps.learned] == ["age", "height"]


def test_copies_of_an_input_are_a_tie_that_is_shared():
    x, y = random_data(0, 20, 3, noise=0.0)
    steps = diagonal_staircase(np.column_stack([x, x[:, 0]]), y, scale=1e-6)
    assert len(steps.warnings) == 1
    assert steps.warnings[0].startswith("x1, x4 ")
    beta = coefficients(steps)[-1]
    np.testing.assert_allclose(beta[0], beta[3])
    np.testing.assert_allclose(steps.levels[-1], 0, atol=1e-14)


def test_bad_arguments_are_named():
    x, y = A

    def attempt(inputs=x, targets=y, scale=1e-6, **options):
        with pytest.raises(InputError) as caught:
            diagonal_staircase(inputs, targets, scale=scale, **options)
        return caught.value.argument

    assert attempt(inputs=np.full((3, 4), np.nan)) == "inputs"
    assert attempt(targets=np.array([1.0, np.inf, 0.0])) == "targets"
    assert attempt(targets=np.zeros(3)) == "targets"
    assert attempt(inputs=np.zeros((3, 4))) == "targets"
    assert [attempt(scale=scale) for scale in (0.0, -1.0, 1.0, 3.0, float("nan"))] == ["scale"] * 5
    assert attempt(feature_names=["one", "two"]) == "feature_names"


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(("inputs", "targets", "argument"), [((3,), (3,), "inputs"), ((3, 4), (4,), "targets")])
def test_arrays_of_other_shapes_are_named(inputs, targets, argument):
    with pytest.raises(InputError) as caught:
        diagonal_staircase(np.ones(inputs), np.ones(targets), scale=1e-6)
    assert caught.value.argument == argument


def test_input_that_was_near_its_boundary_before_it_is_learned_is_told():
    reasons = [
        reason
        for seed in range(12)
        for reason in diagonal_staircase(*random_data(seed, 8, 12, correlation=0.5), scale=1e-8).slow
    ]
    assert any("earlier plateau" in reason for reason in reasons)


def test_nothing_stays_slow_at_the_smallest_scales():
    # Whatever is off decays as a power of the scale, so that only ties in the data could remain.
    counts = [sum(map(bool, diagonal_staircase(*A, scale=scale).slow)) for scale in (1e-2, 1e-6, 1e-12, 1e-100)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 0


def test_plateau_is_too_short_while_an_input_that_left_still_decays():
    x, y = random_data(2, 8, 12, correlation=0.5)
    steps = diagonal_staircase(x, y, scale=1e-8)
    jump = 4
    left = (coefficients(steps)[jump - 1] != 0) & (coefficients(steps)[jump] == 0)
    walls = integrals(x, y, steps)
    # Its size falls as exp(−2 log(1/scale) |ΔS|), which leaves most of it.
    e_folds = 2 * np.log(1e8) * np.abs(walls[jump + 1] - walls[jump])[left]
    assert e_folds == pytest.approx([0.2], abs=0.05)
    assert f"{e_folds[0]:.1f} relaxation times" in steps.slow[jump]


def test_targets_uncorrelated_with_every_input_are_refused():
    # The correlation of x₁x₂ with either input is zero up to round-off.
    inputs = np.array([[0.1, 0.3], [0.1, -0.3], [-0.1, 0.3], [-0.1, -0.3]])
    with pytest.raises(InputError, match="no correlation with any input"):
        diagonal_staircase(inputs, inputs[:, 0] * inputs[:, 1], scale=1e-8)
