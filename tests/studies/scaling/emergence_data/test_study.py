from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.scaling.emergence_data.experiment import Experiment
from dynascope.studies.scaling.emergence_data.study import EmergenceData

TINY = EmergenceData(**EmergenceData.tiny)


def drawn(seed: int) -> EmergenceData:
    draw = np.random.default_rng(seed)
    return dataclasses.replace(
        TINY,
        exponent=float(draw.uniform(0.3, 1.0)),
        target_scale=float(draw.uniform(2.0, 6.0)),
        features=int(draw.integers(8, 40)),
        seed=seed,
    )


@pytest.fixture
def no_networks(monkeypatch):
    """Networks that learn a skill in proportion to what it has beyond ten of its samples, and all of it from twenty."""

    def trained(self, size, skill=None):
        counts = size * (self.task.frequencies if skill is None else np.ones(1))
        strength = np.tile(np.clip(counts / 10 - 1, 0.0, 1.0), (2 * self.study.runs, 1))
        return strength, (1 - strength) ** 2, np.zeros(len(strength))

    monkeypatch.setattr(Experiment, "train", trained)


@pytest.mark.slow
def test_random_fields_pass_their_checks_and_networks_learn_from_many_samples_and_not_from_few():
    study = drawn(1)
    tree = study.run()
    # Two training sets decide only what is far from its bound.
    assert tree.verdict.outcome in ("agree", "undecided"), tree.verdict.sentence
    assert all(each.agrees for each in tree.checks.values())
    strength = tree.observed["strength"]
    assert float(strength.sel(samples=128, skill=1)) > 0.8
    assert float(strength.sel(samples=8, skill=2)) < 0.3


@pytest.mark.slow
def test_a_model_with_another_number_of_features_fails_its_checks(no_networks):
    study = dataclasses.replace(TINY)
    wrong = dataclasses.replace(study, features=study.features + 2).predict().record
    checks = study.compared(study.observe().record, wrong).checks
    assert not all(each.agrees for each in checks.values())


def test_the_law_of_many_features_fails_its_check_for_few(no_networks):
    from dynascope.theory.skills import data_emergence

    study = dataclasses.replace(TINY)
    predicted, observed = study.predict().record, study.observe().record
    limit = data_emergence(study.samples, study.experiment.task.frequencies, study.features)
    wrong = predicted.assign(basis_strength=(predicted["basis_strength"].dims, limit))
    assert not study.compared(observed, wrong).checks["basis_strength"].agrees


def test_the_forecast_comes_from_one_skill_and_holds_for_networks_that_follow_it(no_networks):
    # What distant sizes leave open counts by Student's law, and with two runs nothing is decided.
    study = dataclasses.replace(TINY, samples=[8, 16, 32, 64, 128], runs=12)
    predicted, observed = study.predict().record, study.observe().record
    # Between 8 samples, without strength, and 16, with 0.6, half is passed at 14 2/3.
    assert predicted.attrs["needed_correlation"] == pytest.approx(2 * (8 + 8 * 5 / 6))
    assert predicted["half_samples"].to_numpy() * study.experiment.task.frequencies == pytest.approx(8 + 8 * 5 / 6)
    tree = study.compared(observed, predicted)
    assert tree.verdict.outcome == "agree"
    # Two skills at other places between the numbers of samples than one, and a line between these.
    assert observed["half_samples_ratio"].to_numpy() == pytest.approx(1.0, abs=0.2)
    assert {"strength", "loss_equivalent", "half_samples"} <= set(tree.predicted.data_vars)
    assert "strength_residual" not in tree.residual


@pytest.mark.parametrize("more", [0.25, 4.0])
def test_networks_that_need_four_times_as_many_samples_or_a_quarter_refute_the_forecast(no_networks, monkeypatch, more):
    study = dataclasses.replace(TINY, samples=[4, 8, 16, 32, 64, 128])
    predicted, learn = study.predict().record, Experiment.train
    monkeypatch.setattr(Experiment, "train", lambda self, size: learn(self, size / more))
    # Of two skills the first is asked for three times as often, so that a factor of √3 is half way.
    assert study.compared(study.observe().record, predicted).verdict.outcome == "disagree"


def test_networks_that_are_not_trained_to_the_end_decide_nothing(no_networks, monkeypatch):
    study, learn = dataclasses.replace(TINY, samples=[8, 16, 32, 64, 128], runs=12), Experiment.train
    predicted = study.predict().record
    for left, verdict in ((0.05, "agree"), (0.3, "undecided")):
        monkeypatch.setattr(
            Experiment, "train", lambda self, size, left=left: (*learn(self, size)[:2], np.full(24, left))
        )
        assert study.compared(study.observe().record, predicted).verdict.outcome == verdict


def test_skills_whose_forecast_is_not_within_the_samples_are_left_out(no_networks):
    study = dataclasses.replace(TINY, samples=[8, 16, 32, 64])
    first, second = study.experiment.half_forecast
    assert first / 2 > 8
    assert 1.5 * second > 64 > second
    # Networks that know the second skill and nothing else.
    runs = np.broadcast_to([0.0, 1.0], (4, 2, 2))
    # Of both skills a half is forecast within the samples, and three quarters of the first one only.
    assert [claim.value for claim in study.experiment.differences(runs)] == pytest.approx(
        [0.5 - 0.25, 0.5 - 0.5, 0.0 - 0.75]
    )
    assert study.experiment.nearest(runs).outcome == "does not hold"
    beyond = dataclasses.replace(study, samples=[1, 2], batch_size=1)
    beyond.experiment.needs = study.experiment.needs
    assert beyond.experiment.differences(runs[:2]) == []
    assert beyond.experiment.nearest(runs[:2]).outcome == "undecided"


def test_the_published_setting_is_a_field_away():
    published = EmergenceData(paper=True, seed=5).setting
    assert (published.experiment.task.input_dimension, published.width, published.steps) == (37, 1000, 500_000)
    assert (published.seed, published.paper) == (5, False)


def test_rates_are_halved_where_that_is_asked_for():
    assert TINY.experiment.learning_rate == TINY.learning_rate
    rate = dataclasses.replace(TINY, learning_rate=0.4, halving_steps=10).experiment.learning_rate
    assert [float(rate(step)) for step in (0, 9, 10, 35)] == pytest.approx([0.4, 0.4, 0.2, 0.05])


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("samples", {"samples": [4]}),
        ("samples", {"samples": [4, 6]}),
        ("samples", {"samples": [8, 4]}),
        ("samples", {"samples": [0, 4]}),
        ("batch_size", {"batch_size": 1000}),
        ("batch_size", {"batch_size": 0}),
        ("samples", {"samples": [128, 256]}),
        ("runs", {"runs": 1}),
        ("features", {"features": 5}),
        ("draws", {"draws": 100}),
        ("learning_rate", {"learning_rate": 0.0}),
        ("bits", {"bits": 3}),
        ("seed", {"seed": -1}),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_before_anything_is_trained(monkeypatch, argument, change):
    name = "dynascope.studies.scaling.emergence_experiment.descend"
    monkeypatch.setattr(name, lambda *_, **__: pytest.fail("it was trained"))
    with pytest.raises(InputError) as refusal:
        EmergenceData(**EmergenceData.tiny | change).run()
    assert refusal.value.argument == argument
