from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tiny_runs import tiny_run

from dynascope.errors import InputError
from dynascope.studies import find_study

AgfOptimizer = find_study("agf-optimizer")
tiny = AgfOptimizer(**AgfOptimizer.tiny)


@pytest.fixture(scope="module")
def sides():
    run = tiny_run("agf-optimizer")
    return run.observed, run.predicted


def disagreeing(observed, predicted) -> set[str]:
    agreement = tiny.compared(observed, predicted).quantities
    return {name.removesuffix("_maximum") for name, each in agreement.items() if not each.agrees}


def test_the_prediction_is_reduced_rank_regression():
    task = tiny._task
    predicted = tiny.predict()
    whitened = np.linalg.cholesky(np.linalg.inv(task.input_moment))
    strengths = np.linalg.svd(task.cross_moment @ whitened, compute_uv=False)
    levels = (task.target_power - np.cumsum(strengths**2)) / 2
    np.testing.assert_allclose(predicted["loss"], levels[: tiny.neurons], rtol=1e-9)
    assert float(predicted["growth_rate"][0]) == pytest.approx(np.linalg.norm(task.cross_moment, 2), rel=1e-12)


def test_features_of_the_same_strength_are_refused_as_either_may_be_learned():
    # As many digits of one class as of another, all fitted.
    with pytest.raises(InputError, match="features 2 and 3") as refusal:
        AgfOptimizer(data="digits", neurons=3, samples=44, seed=77).predict()
    assert refusal.value.argument == "seed"
    assert AgfOptimizer(data="digits", neurons=2, samples=44, seed=77).predict().record.sizes["neuron"] == 2


def test_beyond_the_rank_of_the_targets_nothing_is_left_to_learn():
    predicted = dataclasses.replace(tiny, neurons=6, teacher=5).predict()
    loss, rate = predicted["loss"].to_numpy(), predicted["growth_rate"].to_numpy()
    assert np.all(np.diff(loss[:4]) < 0)
    assert np.all(loss[4:] == loss[3])
    assert np.all(rate[:4] > 0)
    assert np.all(rate[4:] == 0)


@pytest.mark.slow
def test_theory_and_training_agree_and_the_baselines_are_told(sides):
    observed, predicted = sides
    tree = tiny.compared(observed, predicted)
    assert tree.verdict.outcome == "agree"
    assert tree.observed.sizes == {"neuron": tiny.neurons}
    fewest = observed.attrs["neurons_to_one_percent"]
    assert fewest["active set"] == tiny.teacher
    for name in ("relu", "sgd", "adam"):
        assert np.all(observed[f"{name}_loss"] >= 0)
        assert np.all(observed[f"{name}_seconds"] > 0)


@pytest.mark.slow
@pytest.mark.parametrize("quantity", ["loss", "growth_rate", "guarantee", "power_balance"])
def test_a_prediction_that_is_wrong_for_one_number_of_neurons_turns_the_verdict(sides, quantity):
    observed, predicted = sides
    assert disagreeing(observed, predicted) == set()
    wrong = predicted.assign({quantity: predicted[quantity] * (1 + 0.05 * (predicted["neuron"] == 2))})
    assert disagreeing(observed, wrong) == {quantity}


@pytest.mark.slow
def test_the_losses_of_another_order_of_modes_turn_the_verdict(sides):
    observed, predicted = sides
    # The second mode before the first.
    wrong = predicted["loss"].copy()
    wrong[0] = predicted["loss"][1] + observed["loss"][0] - observed["loss"][1] / 2
    assert disagreeing(observed, predicted.assign(loss=wrong)) == {"loss"}


@pytest.mark.slow
def test_an_ascent_that_finds_no_maximum_turns_the_verdict(sides, monkeypatch):
    from dynascope.alternating import optimizer as active_set

    ascend = active_set._ascend

    def no_ascent(network, average, active, starts, steps):
        return ascend(network, average, active, starts, 0 * steps)

    monkeypatch.setattr(active_set, "_ascend", no_ascent)
    # The utility is that of the best of a few random directions; the descent repairs the loss.
    observed = tiny.observe().record
    assert "growth_rate" in disagreeing(observed, sides[1])


@pytest.mark.slow
def test_a_descent_that_stops_early_turns_the_verdict(sides, monkeypatch):
    from dynascope.alternating import optimizer as active_set

    minimise = active_set._Run._minimise

    def barely(run):
        run.steps = 1
        minimise(run)

    monkeypatch.setattr(active_set._Run, "_minimise", barely)
    assert {"loss", "growth_rate"} <= disagreeing(tiny.observe().record, sides[1])


@pytest.mark.slow
def test_digits_agree_too(monkeypatch):
    # SGD and Adam, which nothing is judged by, train in the tests above.
    monkeypatch.setattr(AgfOptimizer, "_train_with", lambda study, _: 2 * (np.ones(study.neurons),))
    # At this size L-BFGS meets curvature that points uphill.
    study = dataclasses.replace(tiny, data="digits", samples=600)
    tree = study.run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"neurons": 1}, "neurons"),
        ({"data": "letters"}, "data"),
        ({"samples": 0}, "samples"),
        ({"teacher": -1}, "teacher"),
        ({"data": "digits", "samples": 1798}, "samples"),
    ],
)
def test_fields_out_of_range_are_rejected_by_name(fields, argument):
    with pytest.raises(InputError) as rejection:
        dataclasses.replace(tiny, **fields)
    assert rejection.value.argument == argument
