from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies import find_study

ReversalLearning = find_study("reversal-learning")


# Sizes for which programs are compiled once.
SIZES = {name: ReversalLearning.tiny[name] for name in ("inputs", "balances", "times")}


def drawn(seed: int):
    draw = np.random.default_rng(seed)
    weakest = float(draw.uniform(0.7, 1.2))
    return ReversalLearning(
        **SIZES,
        weakest=weakest,
        strongest=weakest * float(draw.uniform(1.0, 2)),
        smallest_balance=10 ** float(draw.uniform(-2, -1)),
        largest_balance=float(draw.uniform(0.3, 2)),
        sign=int(draw.choice([-1, 1])),
        seed=seed,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_theory_and_experiment_agree_at_random_fields(seed):
    tree = drawn(seed).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    # Every mode was learned and then reversed; otherwise agreement would be cheap.
    strength = tree.observed["mode_strength"]
    assert np.all(strength[:, 0] > 0.5)
    assert np.all(strength[:, -1] < -0.3)
    assert np.all(np.isfinite(tree.observed["reversal_time"]))


@pytest.mark.slow
def test_strong_and_weak_modes_agree_at_large_and_small_balances():
    study = ReversalLearning(
        **SIZES, strongest=5.0, weakest=0.05, smallest_balance=1e-5, largest_balance=4.0, sign=-1, seed=3
    )
    agreement = study.run().quantities
    # The slowest mode is zero two hundred times as late as the fastest; its times are told to 1e-8 or so.
    assert agreement["reversal_time"].error < 1e-6
    assert all(each.agrees for each in agreement.values())


def test_times_that_are_too_far_apart_and_balances_lost_in_rounding_are_refused():
    with pytest.raises(InputError, match="with times 10, the records are too far apart") as refusal:
        ReversalLearning(times=10).predict()
    assert refusal.value.argument == "times"
    with pytest.raises(InputError, match="choose at least 2e-07") as refusal:
        ReversalLearning(smallest_balance=1e-9)
    assert refusal.value.argument == "smallest_balance"


@pytest.mark.slow
def test_modes_pass_zero_at_the_predicted_time_later_the_smaller_the_balance():
    predicted = ReversalLearning(times=100).predict()
    strength, times = predicted["reversal_time"], predicted["time"]
    assert np.all(np.diff(strength, axis=0) < 0)
    assert float(strength.max()) < float(times[-1]) / 2
    # λ = 1e-3 and s = 1: ln(1 + 2ω/λ)/(2ω).
    np.testing.assert_allclose(strength[0, 1], np.log(2001) / 2, rtol=1e-6)


def test_negative_balances_are_not_drawn_on_a_logarithmic_axis():
    study = ReversalLearning(sign=-1, times=100)
    predicted = study.predict().record
    tree = study.with_page(study.compared(predicted, predicted))
    assert [chart.log for chart in tree.charts] == ["", ""]


def test_the_sign_of_the_balance_mirrors_the_prediction():
    positive, negative = (ReversalLearning(sign=sign, times=100).predict().record for sign in (1, -1))
    np.testing.assert_allclose(negative["balance"][::-1], -positive["balance"], rtol=1e-14)
    for name in ("loss", "mode_strength", "reversal_time"):
        np.testing.assert_allclose(negative[name][::-1], positive[name], rtol=1e-9, atol=1e-12)


def test_a_mode_that_is_not_seen_to_reverse_is_a_disagreement():
    study = ReversalLearning(**ReversalLearning.tiny)
    predicted = study.predict().record
    observed = predicted.assign(reversal_time=np.inf * predicted["reversal_time"])
    tree = study.compared(observed, predicted)
    assert tree.verdict.outcome == "disagree"
    agreement = tree.quantities
    failed = {name.removesuffix("_maximum") for name, each in agreement.items() if not each.agrees}
    assert failed == {"reversal_time"}


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("weakest", bad) for bad in (0.0, -1.0, 5.0, np.nan)),
        *(("times", bad) for bad in (9, 0)),
        *(("balances", bad) for bad in (1, 0)),
        *(("smallest_balance", bad) for bad in (0.0, -1.0, 2.0)),
        *(("sign", bad) for bad in (0, 2)),
        *(("outputs", bad) for bad in (0, -2)),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_when_the_study_is_made(field, value):
    with pytest.raises(InputError) as refusal:
        ReversalLearning(**ReversalLearning.tiny | {field: value})
    assert refusal.value.argument == field
