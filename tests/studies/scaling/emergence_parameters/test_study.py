from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.scaling.emergence_parameters.experiment import Experiment
from dynascope.studies.scaling.emergence_parameters.study import EmergenceParameters

TINY = EmergenceParameters(**EmergenceParameters.tiny)


def drawn(seed: int) -> EmergenceParameters:
    draw = np.random.default_rng(seed)
    return dataclasses.replace(
        TINY,
        skills=2,
        exponent=float(draw.uniform(0.3, 1.0)),
        target_scale=float(draw.uniform(2.0, 6.0)),
        features=int(draw.integers(2, 8)),
        seed=seed,
    )


@pytest.fixture
def no_networks(monkeypatch):
    """Networks that give a skill three of their neurons each, the most frequent first."""

    def trained(self, parity, widths, runs):
        shares = np.clip(np.subtract.outer(np.array(widths) / 3, np.arange(parity.skills)), 0.0, 1.0)
        strength = np.repeat(shares[:, None], runs, axis=1)
        return strength, 1 - strength

    monkeypatch.setattr(Experiment, "train", trained)


@pytest.mark.slow
def test_random_fields_pass_their_checks_and_wide_networks_learn_what_narrow_ones_do_not():
    tree = drawn(1).run()
    # Two networks decide only what is far from its bound.
    assert tree.verdict.outcome in ("agree", "undecided"), tree.verdict.sentence
    assert all(each.agrees for each in tree.checks.values())
    strength = tree.observed["strength"]
    # One neuron cannot express a parity.
    assert float(strength.sel(neurons=1).max()) < 0.5
    assert float(strength.sel(neurons=16, skill=1)) > 0.8


def test_a_model_with_another_number_of_features_fails_its_checks(no_networks):
    study = dataclasses.replace(TINY, neurons=[1, 2, 3, 6])
    wrong = dataclasses.replace(study, features=study.features + 1).predict().record
    checks = study.compared(study.observe().record, wrong).checks
    assert not all(each.agrees for each in checks.values())


def test_the_forecast_comes_from_one_skill_and_holds_for_networks_that_follow_it(no_networks):
    study = dataclasses.replace(TINY, neurons=[1, 2, 3, 6])
    predicted, observed = study.predict().record, study.observe().record
    assert predicted.attrs["needed_correlation"] == pytest.approx(3.0)
    assert predicted["half_neurons"].to_numpy() == pytest.approx([1.5, 4.5])
    # Networks that follow the law exactly: the loss of a part of a skill is ½ S² (1 − φ), not ½ (S − R)².
    assert observed["strength"].to_numpy() == pytest.approx(predicted["strength"].to_numpy())
    assert observed["loss_equivalent"].to_numpy() == pytest.approx(predicted["loss_equivalent"].to_numpy())
    assert predicted.attrs["needed_loss_equivalent"] == pytest.approx(3.0)
    tree = study.compared(observed, predicted)
    assert tree.verdict.outcome == "agree"
    assert "strength_residual" not in tree.residual


def test_networks_that_learn_the_skills_in_another_order_refute_the_forecast(no_networks, monkeypatch):
    study = dataclasses.replace(TINY, neurons=[1, 2, 3, 6])
    predicted, learn = study.predict().record, Experiment.train
    monkeypatch.setattr(Experiment, "train", lambda *arguments: [each[..., ::-1] for each in learn(*arguments)])
    assert study.compared(study.observe().record, predicted).verdict.outcome == "disagree"


def test_skills_whose_forecast_is_not_within_the_neurons_make_no_claim(no_networks):
    # Half of the second skill is forecast at 4.5 neurons.
    study = dataclasses.replace(TINY, neurons=[1, 2, 4])
    study.experiment.needs = dataclasses.replace(TINY, neurons=[1, 2, 3, 6]).experiment.needs
    assert [claim.name for claim in study.experiment.differences(np.zeros((3, 2, 2)))] == ["skill 1"]


def test_a_network_is_out_of_order_where_a_rarer_skill_is_stronger_than_any_before(no_networks, monkeypatch):
    study = dataclasses.replace(TINY, skills=3, bits=6, neurons=[1, 2, 3, 6])
    assert study.experiment.needs
    # From one skill to the next by less than counts, and over two by more.
    strength = np.tile([0.0, 0.15, 0.3], (4, study.runs, 1))
    monkeypatch.setattr(Experiment, "train", lambda *_: (strength, 1 - strength))
    np.testing.assert_array_equal(study.observe()["out_of_order"], 1.0)


def test_the_published_setting_is_a_field_away():
    published = EmergenceParameters(paper=True, seed=5).setting
    assert (published.experiment.task.input_dimension, published.batch_size, published.steps) == (37, 4000, 500_000)
    assert (published.seed, published.paper, published.learning_rate, published.weight_decay) == (5, False, 1e-3, 5e-5)


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("neurons", {"neurons": [4]}),
        ("neurons", {"neurons": [4, 2, 8]}),
        ("neurons", {"neurons": [0, 1, 4]}),
        ("neurons", {"neurons": [3, 4, 5]}),
        ("batch_size", {"batch_size": -1}),
        ("batch_size", {"bits": 20}),
        ("runs", {"runs": 1}),
        ("alone", {"alone": 1}),
        ("features", {"features": 0}),
        ("features", {"skills": 1, "features": 1}),
        ("learning_rate", {"learning_rate": 0.0}),
        ("weight_decay", {"weight_decay": -1.0}),
        ("bits", {"bits": 3}),
        ("seed", {"seed": -1}),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_before_anything_is_trained(monkeypatch, argument, change):
    name = "dynascope.studies.scaling.emergence_experiment.descend"
    monkeypatch.setattr(name, lambda *_, **__: pytest.fail("it was trained"))
    with pytest.raises(InputError) as refusal:
        EmergenceParameters(**EmergenceParameters.tiny | change).run()
    assert refusal.value.argument == argument
