from __future__ import annotations

import re

import numpy as np
import pytest

from dynascope import Descent, compare, observe, predict
from dynascope.errors import InputError
from dynascope.networks import DiagonalLinear, TwoLayer
from dynascope.results import Observation, Prediction, describe, make_record
from dynascope.results.tree import to_tree
from dynascope.tasks import Task, digits, regression

# At this scale every plateau is long, so that nothing excuses a wrong prediction.
SCALE = 1e-60


@pytest.fixture(scope="module")
def linear():
    """Observed at two scales and predicted: rank by rank, three well separated modes of correlated inputs."""
    draw = np.random.default_rng(0)
    turn, _ = np.linalg.qr(draw.normal(size=(3, 3)))
    task = regression(
        samples=30,
        input_covariance=(turn * [1.0, 0.8, 0.6]) @ turn.T,
        target_map=np.diag([1.0, 0.5, 0.25]),
        noise=0.1,
        exact_moments=True,
    )
    network = TwoLayer(3, 4, 3, seed=1)
    runs = [observe(task, network, scale=scale).record for scale in (SCALE, SCALE * 1e-4)]
    return *runs, predict(task, network, scale=SCALE, curve=False).record


@pytest.fixture(scope="module")
def diagonal():
    """Observed at two scales and predicted: coordinate by coordinate, each drop more than six percent of the loss."""
    draw = np.random.default_rng(74)
    x = draw.normal(size=(5, 4))
    task = Task(x, x @ [[1.0], [-0.9], [0.8], [0.0]] + 0.3 * draw.normal(size=(5, 1)))
    runs = [observe(task, "diagonal", scale=scale).record for scale in (SCALE, SCALE * 1e-4)]
    return *runs, predict(task, "diagonal", scale=SCALE, curve=False).record


@pytest.fixture(params=["linear", "diagonal"])
def pair(request):
    return request.getfixturevalue(request.param)


def agreement(tree):
    return tree.quantities


def test_a_prediction_is_a_record(unchecked_types):
    with pytest.raises(InputError, match="then the result of predict") as caught:
        compare(make_record({"loss": (["time"], [1.0])}, {"time": [0.0]}), [1.0, 0.5])
    assert caught.value.argument == "predicted"


def disagreeing(tree):
    assert tree.verdict.outcome in ("agree", "disagree")
    failed = {name for name, each in agreement(tree).items() if not each.agrees}
    assert (tree.verdict.outcome == "disagree") == bool(failed)
    return failed


def with_times(predicted, factor):
    return predicted.assign(jump_time=factor * predicted["jump_time"])


def with_levels(predicted, levels):
    return predicted.assign(loss_before=("jump", levels[:-1]), loss_after=("jump", levels[1:]))


def levels_of(predicted):
    return np.append(predicted["loss_before"][:1], predicted["loss_after"])


@pytest.mark.slow
def test_true_pairs_agree_in_every_quantity(pair):
    observed, other, predicted = pair
    tree = compare(observed, predicted, at_other_scale=other)
    assert disagreeing(tree) == set()
    assert set(agreement(tree)) == {*("initial_loss", "jump_time", "level", "missing_jumps", "extra_jumps", "slope")}
    assert all(each.error is not None for each in agreement(tree).values())


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1.3, 1 / 1.3])
def test_wrong_times_disagree(pair, factor):
    observed, _, predicted = pair
    assert "jump_time" in disagreeing(compare(observed, with_times(predicted, factor)))


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.05, -0.05])
def test_wrong_level_disagrees(pair, shift):
    observed, _, predicted = pair
    levels = levels_of(predicted)
    levels[1] += shift * levels[0]
    assert "level" in disagreeing(compare(observed, with_levels(predicted, levels)))


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1, 2])
def test_prediction_without_a_jump_disagrees(pair, which):
    observed, _, predicted = pair
    levels = np.delete(levels_of(predicted), which + 1)
    fewer = with_levels(predicted.isel(jump=[j for j in range(predicted.sizes["jump"]) if j != which]), levels)
    tree = compare(observed, fewer)
    assert "extra_jumps" in disagreeing(tree)
    assert agreement(tree)["extra_jumps"].error >= 1


def test_prediction_with_a_jump_too_many_disagrees(pair):
    observed, _, predicted = pair
    # The second drop in two halves, with a long plateau between them.
    levels, times = levels_of(predicted), predicted["jump_time"].to_numpy()
    repeated = predicted.isel(jump=np.sort([*range(len(times)), 1])).assign_coords(jump=np.arange(1, len(times) + 2))
    repeated = with_levels(repeated, np.insert(levels, 2, levels[1:3].mean()))
    early = times[0] + (times[1] - times[0]) / 2
    split = np.insert(times, 1, early)
    more = repeated.assign(jump_time=("jump", split), accelerated_time=("jump", -split / np.log(SCALE)))
    assert "missing_jumps" in disagreeing(compare(observed, more))
    # And one that the run never makes.
    lower = with_levels(repeated, np.append(levels, levels[-1] - 0.05 * levels[0]) + 0.1 * levels[0])
    assert "missing_jumps" in disagreeing(compare(observed, lower))


def test_a_run_that_ends_too_soon_is_judged_by_what_was_due(pair):
    observed, _, predicted = pair
    last = float(predicted["jump_time"][-1])
    tree = compare(observed.sel(time=slice(0, 0.7 * last)), predicted)
    assert disagreeing(tree) == set()
    assert tree.residual["status"].to_numpy()[-1] == "not due"
    nothing = compare(observed.sel(time=slice(0, 0.3 * float(predicted["jump_time"][0]))), predicted)
    assert nothing.verdict.outcome == "undecided"


def test_a_jump_that_is_due_and_does_not_come_is_missing(pair):
    observed, _, predicted = pair
    early = with_times(predicted, 0.5)
    tree = compare(observed.sel(time=slice(0, 0.7 * float(predicted["jump_time"][-1]))), early)
    assert "missing_jumps" in disagreeing(tree)
    assert agreement(tree)["jump_time"].error == np.inf


@pytest.mark.parametrize("factor", [0.9, 2.0])
def test_another_initial_loss_disagrees_even_where_all_jumps_are_slow(pair, factor):
    observed, _, predicted = pair
    slow = predicted.assign(slow=("jump", np.ones(predicted.sizes["jump"], bool)))
    other = observed.assign(loss=factor * observed["loss"])
    for prediction in (predicted, slow):
        assert "initial_loss" in disagreeing(compare(other, prediction))


def test_a_curve_that_begins_after_the_first_jump_says_nothing_of_the_initial_loss(pair):
    observed, _, predicted = pair
    first, second = predicted["jump_time"].to_numpy()[:2]
    late = observed.sel(time=slice((first + second) / 2, None))
    assert np.isnan(agreement(compare(late, predicted))["initial_loss"].error)


def test_wrong_slopes_disagree(pair):
    observed, other, predicted = pair
    wrong = predicted.assign(accelerated_time=1.1 * predicted["accelerated_time"])
    assert "slope" in disagreeing(compare(observed, wrong, at_other_scale=other))


def test_a_run_on_other_data_or_from_another_scale_disagrees_with_a_warning(linear, diagonal):
    for run, word in ((linear[0], "data"), (diagonal[1], "scale")):
        found = compare(run, diagonal[2])
        assert disagreeing(found)
        assert any(word in each for each in found.warnings)
    assert not any("The run" in each for each in compare(diagonal[0], diagonal[2]).warnings)


def test_sides_in_the_wrong_order_are_rejected(linear, unchecked_types):
    observed, _, predicted = linear
    run, theory = Observation.of(observed), Prediction.of(predicted)
    for sides, argument in (((theory, theory), "observed"), ((run, run), "predicted"), ((None, theory), "observed")):
        with pytest.raises(InputError, match="then the result of predict") as caught:
            compare(*sides)
        assert caught.value.argument == argument


def test_slow_jumps_are_left_out_of_the_judgement(pair):
    observed, other, predicted = pair
    wrong = with_times(predicted, 1.3).assign(slow=("jump", np.ones(predicted.sizes["jump"], bool)))
    tree = compare(observed, wrong, at_other_scale=other)
    assert tree.verdict.outcome == "undecided"
    assert all(np.isnan(each.error) for each in agreement(tree).values())
    # Nor do tolerances make of it what supports the theory.
    loose = compare(
        observed.assign(loss=1.1 * observed["loss"]), wrong, tolerance={"initial_loss": 1, "extra_jumps": 9}
    )
    assert loose.verdict.outcome == "undecided"
    np.testing.assert_allclose(tree.residual["jump_time_error"], 0.3, atol=0.1)


@pytest.mark.parametrize("factor", [0.1, 0.5, 2.0, 10.0])
def test_times_that_are_far_off_never_agree(pair, factor):
    observed, _, predicted = pair
    assert compare(observed, with_times(predicted, factor)).verdict.outcome == "disagree"


def test_tolerances_come_from_the_user_then_the_theory_then_the_default(linear):
    observed, _, predicted = linear
    strict = agreement(compare(observed, predicted, tolerance={"jump_time": 1e-9}))["jump_time"]
    assert (strict.tolerance, strict.agrees, strict.reason) == (1e-9, False, "chosen by the user")
    judged = predicted.assign_attrs(jump_time_tolerance=1e-9, jump_time_tolerance_reason="it is exact")
    times = agreement(compare(observed, judged))["jump_time"]
    assert (times.tolerance, times.agrees, times.reason) == (1e-9, False, "it is exact")
    theory = agreement(compare(observed, predicted))
    assert theory["jump_time"].tolerance == predicted.attrs["jump_time_tolerance"]
    assert theory["level"].tolerance == 0.02
    loose = compare(observed, with_times(predicted, 1.3), tolerance={"jump_time": 0.5})
    assert disagreeing(loose) == set()


def test_tolerance_of_what_is_not_compared_is_refused(linear):
    observed, _, predicted = linear
    with pytest.raises(InputError, match="slope, but no such quantity") as caught:
        compare(observed, predicted, tolerance={"slope": 0.1})
    assert caught.value.argument == "tolerance"


def test_tree_holds_both_sides_and_says_what_it_is(linear):
    observed, _, predicted = linear
    tree = compare(observed, predicted)
    assert tree.observed.identical(observed)
    assert tree.predicted.identical(predicted)
    assert tree.title.endswith("linear network")
    assert tree.predicted.attrs["data_hash"] == observed.attrs["data_hash"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", tree.provenance.date)
    assert set(tree.provenance.versions) == {"jax", "numpy", "python"}
    alone = Prediction.of(predicted)
    assert set(alone.provenance.versions) == {"jax", "numpy", "python"}
    assert list(alone.sides) == ["predicted"]
    assert alone.verdict is None


def test_every_part_of_a_tree_says_in_words_what_it_is():
    time = {"time": [0.0, 1.0, 2.0]}
    run = make_record({"accuracy": (["time"], [0.5, 0.8, 0.9])}, time).assign(accuracy=("time", [0.5, 0.8, 0.91]))
    tree = compare(run, make_record({"accuracy": (["time"], [0.5, 0.8, 0.9])}, time))
    words = {
        (node.name, str(name)): part.attrs["long_name"]
        for node in to_tree(tree).subtree
        for name, part in node.variables.items()
    }
    assert words["residual", "accuracy_residual"] == describe("accuracy_residual")[0]
    assert words["observed", "accuracy"] == describe("accuracy")[0]


def test_curves_are_judged_by_norm_and_by_maximum():
    time = np.linspace(0, 1, 101)
    theory = make_record({"loss": (["time"], np.exp(-time))}, {"time": time}, attributes={"loss_tolerance": 0.1})
    # A narrow spike is small in the norm.
    run = make_record({"loss": (["time"], np.exp(-time) + 0.2 * (time == 0.5))}, {"time": time})
    assert disagreeing(compare(run, theory)) == {"loss_maximum"}
    assert disagreeing(compare(run, theory, tolerance={"loss_maximum": 0.3})) == set()
    assert disagreeing(compare(run, theory, tolerance={"loss": 0.01})) == {"loss", "loss_maximum"}
    assert agreement(compare(run, theory))["loss_maximum"].tolerance == 0.01


def test_curve_that_is_partly_unknown_disagrees():
    time = np.linspace(0, 1, 5)
    theory = make_record({"accuracy": (["time"], time)}, {"time": time})
    run = make_record({"accuracy": (["time"], np.where(time == 0.5, np.nan, time))}, {"time": time})
    assert disagreeing(compare(run, theory)) == {"accuracy", "accuracy_maximum"}


def test_steps_of_a_descent_are_compared_at_their_times():
    # Small steps follow the flow: two uncorrelated inputs, learned one after the other.
    task = Task(np.eye(2) * 2**0.5, np.array([[2.0], [0.5]]) * 2**0.5)
    predicted = predict(task, DiagonalLinear(2), scale=1e-4, curve=False).record
    run = observe(
        task, DiagonalLinear(2), method=Descent(learning_rate=0.01, steps=4000, save=np.arange(0, 4001, 5)), scale=1e-4
    ).record
    tree = compare(run, predicted)
    assert disagreeing(tree) == set()
    # The step shifts times by its size over the growth e-fold.
    assert agreement(tree)["jump_time"].error < 0.02
    assert tree.observed["loss"].dims == ("time",)


def test_records_without_anything_in_common_are_refused(linear):
    observed, *_ = linear
    with pytest.raises(InputError, match="share no variable over time"):
        compare(observed, make_record({"accuracy": (["time"], [0.0, 1.0])}, {"time": [0.0, 1.0]}))
    with pytest.raises(InputError, match="convention"):
        compare(observed.drop_attrs(), linear[2])


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "time_error"), [(1e-8, 0.12), (1e-20, 0.06)])
def test_digits_are_learned_in_nine_jumps_as_predicted(scale, time_error):
    task = digits()
    network = TwoLayer(64, 50, 10)
    runs = [observe(task, network, scale=each).record for each in (scale, scale * 1e-4)]
    predicted = predict(task, network, scale=scale, curve=False).record
    tree = compare(runs[0], predicted, at_other_scale=runs[1])
    assert disagreeing(tree) == set()
    residual = tree.residual
    assert residual.sizes["jump"] == 9
    assert not predicted["slow"].any()
    assert np.abs(residual["jump_time_error"]).max() < time_error
    assert np.abs(residual["slope_error"]).max() < 0.05
    assert np.abs(residual["level_error"]).max() < 0.02
    # The limit without the actual start would be off by more.
    limit = predicted["accelerated_time"] * -np.log(scale) / residual["observed_jump_time"] - 1
    assert np.abs(limit).max() > np.abs(residual["jump_time_error"]).max()
