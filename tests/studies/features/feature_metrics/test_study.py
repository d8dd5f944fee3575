from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.errors import DivergenceError, InputError
from dynascope.studies.features.feature_metrics.experiment import Experiment
from dynascope.studies.features.feature_metrics.study import FeatureMetrics

JUDGED = ("loss", "test_loss", "accuracy", "kappa_cka", "effective_dimension_utilization", "utilization")


def drawn(seed: int, **fields):
    draw = np.random.default_rng(seed)
    # All tests have the same sizes, so that one program serves all.
    chosen = {
        "learning_rate": float(draw.uniform(0.05, 0.3)),
        "weight_decay": float(draw.uniform(0, 2e-3)),
        "modes": int(draw.integers(2, 10)),
        "seed": seed,
    }
    return FeatureMetrics(**FeatureMetrics.tiny | chosen | fields)


@pytest.mark.slow
@pytest.mark.parametrize("data", ["heaviside", "digits"])
def test_theory_and_training_agree_for_random_fields(data):
    study = drawn(3, data=data)
    tree = study.run()
    checks = tree.checks
    assert set(checks) == set(study.tolerance)
    assert all(each.agrees for each in checks.values()), tree.verdict.sentence
    observed = tree.observed
    for name in JUDGED:
        assert np.ptp(observed[name].to_numpy(), axis=0).max() > 0, name
    # Both ways of training start at the same values and separate.
    for name in ("kappa_cka", "test_loss"):
        full, alone = observed[f"full_{name}"].to_numpy(), observed[name].to_numpy()
        assert full[0] == pytest.approx(alone[0], rel=1e-9)
        assert abs(full[-1] - alone[-1]) > 1e-3 * abs(alone[-1])
    # On the grid the modes are orthonormal, so that their shares sum to at most one.
    if data == "heaviside":
        assert np.all(observed["full_cumulative_utilization"] < 1 + 1e-9)
    kappas = np.array([observed["kappa_cka"][-1], observed["full_kappa_cka"][-1]])
    assert (observed["regime"] == "minimum features").to_numpy().tolist() == (kappas < 0.1).tolist()
    ends = observed["end_kappa_cka"].to_numpy()
    np.testing.assert_array_equal(ends[0], kappas)
    # Other seeds give other networks.
    assert np.ptp(ends, axis=0).min() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alone", "full", "verdict"),
    [
        ([0.50, 0.52], [0.040, 0.041], "agree"),
        ([0.04, 0.05], [0.30, 0.31], "disagree"),
        ([0.50, 0.52], [0.30, 0.31], "disagree"),
        ([0.5, 0.1], [0.0, 0.2], "undecided"),
    ],
)
def test_both_claims_about_kappa_decide_the_verdict(monkeypatch, alone, full, verdict):
    study, claimed = FeatureMetrics(**FeatureMetrics.tiny), FeatureMetrics.claimed
    ends = {"end_kappa_cka": (("seed", "run"), np.transpose([alone, full])), "fitted": ("seed", [True, True])}
    monkeypatch.setattr(FeatureMetrics, "claimed", lambda self, found: claimed(self, {**found, **ends}))
    tree = study.run()
    assert tree.verdict.outcome == verdict, tree.verdict.sentence
    assert tree.quantities == {}


def test_the_predicted_loss_and_features_change_during_training():
    study = FeatureMetrics(**FeatureMetrics.tiny)
    predicted = study.predict()
    # The last layer learns, and uses other features at the end.
    assert predicted["loss"][-1] < 0.95 * predicted["loss"][0]
    assert np.ptp(predicted["kappa_cka"].to_numpy()) > 0.1


def test_held_out_digits_are_different_and_classes_are_balanced():
    inputs, targets = Experiment(FeatureMetrics(samples=100)).data
    assert inputs.shape == (200, 64)
    np.testing.assert_array_equal(targets[:100].sum(axis=0), 10)
    np.testing.assert_array_equal(targets[100:].sum(axis=0), 10)
    assert len(np.unique(inputs, axis=0)) == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("samples", 10),
        ("width", 0),
        ("learning_rate", 0.0),
        ("weight_decay", -1.0),
        ("steps", 0),
        ("batch_size", 0),
        ("batch_size", 61),
        ("times", 1),
        ("modes", 0),
        ("threshold", 0.0),
        ("seeds", 1),
        ("seed", -1),
    ],
)
def test_a_field_out_of_range_is_rejected_by_name(field, value):
    with pytest.raises(InputError) as refusal:
        FeatureMetrics(**{**FeatureMetrics.tiny, field: value})
    assert refusal.value.argument == field


def test_more_digits_than_exist_are_rejected():
    with pytest.raises(InputError, match="at most 870"):
        FeatureMetrics(samples=900)


@pytest.mark.slow
def test_unfinished_training_leaves_the_claims_undecided():
    # The loss ends at four fifths of its initial value, with κ far above the threshold.
    tree = dataclasses.replace(drawn(3, data="digits"), learning_rate=0.1, threshold=0.04).run()
    assert not tree.observed["fitted"].any()
    assert tree.verdict.outcome == "undecided"


@pytest.mark.slow
def test_a_dead_network_raises_divergence():
    dead = {"data": "digits", "width": 8, "learning_rate": 0.7, "steps": 50, "batch_size": 10, "times": 6, "seed": 24}
    with pytest.raises(DivergenceError, match="no longer depends on its inputs"):
        FeatureMetrics(**FeatureMetrics.tiny | dead).run()
