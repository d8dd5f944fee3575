"""Loss curves of a user's training against the staircase predicted from the same initial weights."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import user_training
from hypothesis import given
from hypothesis import strategies as st

from dynascope import compare, predict
from dynascope.comparison import user_curve
from dynascope.comparison.user_curves.units import LOSSES
from dynascope.errors import InputError
from dynascope.report.page import render_page
from dynascope.results import make_record

RATE = user_training.RATE
predicted = functools.cache(user_training.predicted)
losses = functools.cache(user_training.losses)


def compared(curve, theory=None, *, rate=RATE, loss="mse", steps=None, momentum=0.0, **more):
    run = user_curve(curve, learning_rate=rate, loss=loss, steps=steps, momentum=momentum)
    return compare(run, predicted() if theory is None else theory, **more)


def verdict(*args, **options):
    return compared(*args, **options).verdict.outcome


def status(tree):
    return tree.residual["status"].to_numpy().tolist()


def warnings(tree):
    return " ".join(tree.predicted.attrs["warnings"])


def failed(tree):
    return [name for name, each in tree.quantities.items() if not each.agrees]


def noisy(spread, seed=0):
    """As from minibatches; the mean stays."""
    draw = np.random.default_rng(seed).normal(size=len(losses()))
    return losses() * np.exp(spread * draw - spread**2 / 2)


@pytest.mark.slow
@given(st.sampled_from(list(LOSSES)), st.sampled_from([1, 2, 3]), st.floats(0.3, 3.0))
def test_conventions_and_rates_leave_verdict_and_errors(loss, outputs, speed):
    ours = losses("squared", outputs=outputs)
    factor = user_training.FACTORS[loss](40, outputs)
    # The same path, in the losses of that convention and by the rate that gives the same steps.
    here = compared(ours, predicted(outputs), loss="squared")
    there = compared(factor * ours, predicted(outputs), loss=loss, rate=RATE / factor)
    assert here.verdict.outcome == there.verdict.outcome == "agree"
    assert here.verdict.sentence == there.verdict.sentence
    np.testing.assert_allclose(there.residual["jump_time_error"], here.residual["jump_time_error"], rtol=1e-9)
    np.testing.assert_allclose(there.residual["observed_jump_time"], here.residual["observed_jump_time"])
    np.testing.assert_allclose(there.predicted["loss_after"], factor * here.predicted["loss_after"])
    # Over their sum instead of steps.
    rates = np.full(len(ours), RATE / factor)
    over_time = compared(factor * ours, predicted(outputs), loss=loss, rate=rates)
    assert over_time.verdict.outcome == "agree"
    times = over_time.residual["observed_jump_time"]
    np.testing.assert_allclose(times, here.residual["observed_jump_time"] * RATE / factor)


@pytest.mark.parametrize("loss", LOSSES)
def test_descent_of_each_convention_follows_its_prediction(loss):
    rate = RATE * user_training.FACTORS["mse"](40, 3) / user_training.FACTORS[loss](40, 3)
    tree = compared(losses(loss, rates=rate), loss=loss, rate=rate)
    assert tree.verdict.outcome == "agree"
    assert status(tree) == ["judged", "judged", "not due"]


def test_a_schedule_is_the_sum_of_its_rates():
    rates = RATE * np.linspace(1.5, 0.5, 1500)
    tree = compared(user_training.losses(rates=rates), rate=rates)
    assert tree.verdict.outcome == "agree"
    assert status(tree)[:2] == ["judged", "judged"]
    # By steps, as if the rate were constant, the first jump comes early by a third.
    assert verdict(user_training.losses(rates=rates), rate=float(rates[-1])) == "disagree"


@pytest.mark.parametrize("factor", [0.5, 2.0])
@pytest.mark.parametrize("spread", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("every", [1, 30, 150])
@pytest.mark.parametrize("length", [300, 1500])
def test_a_rate_that_is_wrong_by_two_never_agrees_and_the_true_one_never_disagrees(factor, spread, every, length):
    curve, steps = noisy(spread)[:length:every], np.arange(0, length, every)
    assert verdict(curve, steps=steps, rate=factor * RATE) != "agree"
    assert verdict(curve, steps=steps) != "disagree"


@pytest.mark.parametrize("scale", [1e-1, 1e-2])
def test_where_theory_itself_would_let_twice_the_rate_pass_nothing_is_judged(scale):
    vague = predicted().assign_attrs(jump_time_tolerance=2.2 / -np.log(scale))
    for factor in (0.5, 1.0, 2.0):
        tree = compared(losses(), vague, rate=factor * RATE)
        assert tree.verdict.outcome == "undecided"
    # Whoever knows better says so.
    assert verdict(losses(), vague, tolerance={"jump_time": 0.1}) == "agree"


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_the_loss_at_that_scale_decides_where_the_limit_is_too_vague(factor):
    curve, known = losses(scale=1e-2), predicted(scale=1e-2, curve=True)
    tree = compared(curve, known, rate=factor * RATE)
    assert tree.verdict.outcome == ("agree" if factor == 1 else "disagree")
    assert "judged" in status(tree)
    assert ("curve" in failed(tree)) == (factor != 1)


def test_other_weights_of_the_same_scale_are_held_to_what_is_known_of_any():
    drawn = predicted(curve=True).assign_attrs(weights="drawn")
    tree = compared(losses(), drawn)
    assert tree.verdict.outcome == "agree"
    judged = tree.quantities
    assert "curve" not in judged
    assert judged["jump_time"].tolerance >= drawn.attrs["jump_time_tolerance"]


@pytest.mark.parametrize("spread", [0.01, 0.03, 0.1])
def test_noise_makes_no_plateaus_and_further_ones_are_not_looked_for(spread):
    for seed in range(3):
        tree = compared(noisy(spread, seed))
        assert tree.verdict.outcome == "agree"
        extra = tree.quantities["extra_jumps"]
        assert np.isnan(extra.error)


def test_a_plateau_that_nobody_predicted_is_seen_where_there_is_no_noise():
    theory = predicted().isel(jump=[1, 2])
    theory = theory.assign(loss_before=theory["loss_before"].where(theory["jump"] > 2, predicted()["loss_before"][0]))
    assert "extra_jumps" in failed(compared(losses(), theory))


def test_a_jump_above_the_first_loss_is_not_seen():
    tree = compared(0.3 * losses())
    assert status(tree)[0] == "unclear"
    assert np.isnan(tree.residual["observed_jump_time"][0])
    assert np.isnan(tree.residual["jump_time_error"][0])


def test_noise_that_hides_a_jump_leaves_it_open():
    draw = np.random.default_rng(0).normal(size=len(losses()))
    # The jump is a tenth of the first loss; two tenths, averaged over sixty points, are not an eighth of that.
    tree = compared(np.abs(losses() + 0.2 * losses()[0] * draw))
    assert status(tree)[1] == "unclear"
    assert "nois" in warnings(tree)


def test_printed_losses_are_judged_as_far_as_they_tell():
    for decimals, told in ((4, 5), (1, 3)):
        tree = compared(np.round(losses(), decimals))
        assert tree.verdict.outcome == "agree"
        found = tree.quantities
        assert sum(each.judged for each in found.values()) == told


def test_rare_points_widen_the_tolerance_or_leave_the_jump_open():
    close = compared(losses()).quantities["jump_time"]
    rare = compared(losses()[::20], steps=np.arange(0, 1500, 20)).quantities["jump_time"]
    assert 0.005 < rare.tolerance - close.tolerance < 20 / 395
    tree = compared(losses()[::300], steps=np.arange(0, 1500, 300))
    assert status(tree)[0] == "unclear"
    assert "every 300 steps" in warnings(tree)
    assert "missing_jumps" not in failed(tree)


@pytest.mark.parametrize("every", [20, 50, 100, 300])
@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_a_curve_logged_rarely_is_held_to_the_loss_at_that_scale_as_closely_as_its_points_tell(every, factor):
    curve, known = losses(scale=1e-2)[::every], predicted(scale=1e-2, curve=True)
    tree = compared(curve, known, steps=np.arange(0, 1500, every), rate=factor * RATE)
    assert tree.verdict.outcome != ("disagree" if factor == 1 else "agree")
    # A line from the first point to the second, in the middle of a jump, is no curve.
    told = tree.quantities["curve"].judged
    assert told == (every == 20)


@pytest.mark.parametrize("length", range(40, 200, 20))
def test_a_curve_that_ends_before_it_tells_its_rate_is_not_judged(length):
    curve, known = losses(scale=1e-2)[:length], predicted(scale=1e-2, curve=True)
    for factor in (0.5, 2.0):
        assert verdict(curve, known, rate=factor * RATE) != "agree"
    assert verdict(curve, known) != "disagree"


@pytest.mark.parametrize("length", [3, 40, 120])
def test_a_curve_that_ends_early_has_finite_tolerances(length):
    tree = compared(losses(scale=1e-2)[:length], predicted(scale=1e-2, curve=True))
    assert all(np.isfinite(each.tolerance) for each in tree.quantities.values())


def test_a_short_curve_that_agrees_says_how_little_of_the_fall_it_shows():
    few, most = compared(losses()[450:1000], steps=np.arange(450, 1000)), compared(losses())
    assert most.verdict.share_of_fall > 0.5
    assert few.verdict.outcome == "undecided"
    assert few.verdict.share_of_fall == 0.0


def test_descent_of_a_diagonal_network_follows_its_prediction():
    # Times that have lost their units in an assignment are times still.
    draw = np.random.default_rng(0)
    x = draw.normal(size=(40, 2))
    y = x @ np.array([3.0, 1.0])
    u, v, curve = np.full(2, 1e-3), np.zeros(2), []
    for _ in range(1500):
        error = x @ (u * v) - y
        curve.append(np.mean(error**2))
        slope = 2 * x.T @ error / 40
        u, v = u - 0.01 * slope * v, v - 0.01 * slope * u
    known = predict((x, y), "diagonal", scale=1e-3).record
    assert all("units" in each.attrs for each in known.variables.values())
    for each in (known, known.assign(jump_time=("jump", known["jump_time"].to_numpy()))):
        tree = compared(curve, each, rate=0.01)
        assert tree.verdict.outcome == "agree"
        assert status(tree) == ["judged", "judged"]


@pytest.mark.parametrize("begin", [300, 500])
def test_a_curve_that_begins_late_is_judged_by_what_follows(begin):
    tree = compared(losses()[begin:], steps=np.arange(begin, 1500))
    assert tree.verdict.outcome == "agree"
    assert status(tree) == ["judged" if begin < 390 else "unclear", "judged", "not due"]
    assert np.isnan(tree.quantities["initial_loss"].error)


@pytest.mark.parametrize("length", [2, 30, 350, 396, 410, 450, 1000, 1070, 1200])
def test_a_short_curve_is_judged_on_what_was_due(length):
    tree = compared(losses()[:length])
    assert tree.verdict.outcome == ("undecided" if length < 394 else "agree")
    assert status(tree).count("judged") == (length > 394) + (length > 1070)


def test_a_jump_that_never_comes_is_missed():
    flat = np.full(1500, losses()[0])
    tree = compared(flat)
    assert tree.verdict.outcome == "disagree"
    assert "missing_jumps" in failed(tree)


def test_a_run_goes_on_after_the_last_jump_that_was_asked_for():
    first = predicted().isel(jump=[0]).assign_attrs(complete=0)
    tree = compared(losses(), first)
    assert tree.verdict.outcome == "agree"
    assert status(tree) == ["judged"]


@pytest.mark.parametrize("momentum", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_a_rate_with_momentum_goes_as_far_as_one_over_what_is_left(momentum, factor):
    # At .99 the delay of a step is most of the time of the first jump, so the curve may remain undecided.
    rate = RATE / 4 * (1 - momentum)
    curve = losses(rates=rate, momentum=momentum, steps=6000)
    tree = compared(curve, rate=factor * rate, momentum=momentum)
    right = "agree" if factor == 1 else "disagree"
    assert tree.verdict.outcome in ((right,) if momentum < 0.99 else (right, "undecided"))
    # Without it the times are those of another run; by the sum of rates over what is left they are the same.
    if factor == 1 and momentum == 0.9:
        assert verdict(curve, rate=rate) == "disagree"
        summed = compared(curve, rate=np.full(6000, rate), momentum=momentum)
        assert summed.verdict.outcome == "agree"
        assert status(summed) == status(tree) == ["judged", "judged", "not due"]


def test_jumps_that_theory_calls_slow_stay_so():
    slow = predicted().assign(slow=("jump", [True, False, False]), reason=("jump", ["a reason", "", ""]))
    tree = compared(losses()[::300], slow, steps=np.arange(0, 1500, 300))
    assert status(tree)[0] == "slow"
    assert tree.predicted["reason"].to_numpy().tolist() == ["a reason", "", ""]
    assert "Jump 1 " not in warnings(tree)


def test_a_staircase_without_jumps_is_compared():
    none = predicted().isel(jump=slice(0))
    assert verdict(np.full(100, losses()[0]), none) == "undecided"
    assert verdict(losses(), none) == "disagree"


def test_pages_say_everything_in_the_units_of_the_curve():
    tree = compared(losses())
    page = render_page(tree)
    words = page[: page.index("<script>")]
    assert "½" not in words
    assert "gradient-flow time" not in words
    assert "learning rate 0.02" in words


def test_an_ensemble_of_predictions_is_refused():
    both = make_record(
        {
            **{name: (["seed", "jump"], [[3.0], [4.0]]) for name in ("jump_time", "accelerated_time")},
            **{name: (["jump"], [value]) for name, value in (("loss_before", 1.0), ("loss_after", 0.0))},
        },
        {"seed": [0, 1], "jump": [1]},
        attributes={"output_dimension": 1},
    )
    with pytest.raises(InputError, match="ensemble of 2") as caught:
        compared([1.0, 0.5], both)
    assert caught.value.argument == "predicted"
    assert verdict([2.0, 1.9], both.isel(seed=0)) == "undecided"


def test_a_jump_at_no_known_time_is_no_error():
    unknown = predicted().assign(jump_time=("jump", [np.inf] * 3))
    assert verdict(np.full(100, losses()[0]), unknown) == "undecided"
    assert verdict(noisy(0.05), unknown) == "disagree"


def test_slopes_need_records_of_observe():
    other = make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]}, attributes={"scale": 1e-3})
    with pytest.raises(InputError, match="at_other_scale") as caught:
        compared(losses(), at_other_scale=other)
    assert caught.value.argument == "at_other_scale"


def test_levels_are_held_against_what_theory_knows_of_each():
    rough = predicted().assign(
        jump_time_uncertainty=("jump", [0.1, 0.1, 0.1]), level_uncertainty=("jump", [0.03, 0.04, 0.05])
    )
    level = compared(losses(), rough).quantities["level"]
    assert level.tolerance in (0.03, 0.04, 0.05)
    assert compared(losses()).quantities["level"].tolerance == 0.02
