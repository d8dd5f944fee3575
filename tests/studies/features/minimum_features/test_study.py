import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.features.minimum_features.claims import setting_effects
from dynascope.studies.features.minimum_features.experiment import Experiment
from dynascope.studies.features.minimum_features.study import MinimumFeatures

TINY = dict(MinimumFeatures.tiny)


def figures(tree):
    return [chart.variables[0] for chart in tree.charts]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3])
def test_checks_pass_for_random_fields(seed):
    draw = np.random.default_rng(seed)
    # The sizes are those of the other tests, which share the compiled programs.
    chosen = {"learning_rate": float(draw.uniform(0.005, 0.05)), "weight_decay": float(draw.uniform(0, 3e-3))}
    study = MinimumFeatures(**TINY | chosen | {"hypotheses": ["H8"], "loss": "cross_entropy", "seed": seed})
    tree = study.run()
    checks = tree.checks
    assert all(each.agrees for each in checks.values()), tree.verdict.sentence
    # H8 does not state how to reach minimum features.
    assert tree.verdict.outcome == "undecided"
    observed = tree.observed
    assert np.isfinite(observed["kappa_cka"]).all()
    # Regressions have no accuracy.
    assert figures(tree) == ["kappa_cka_change", "kappa_cka", "cumulative_utilization"]


@pytest.mark.slow
def test_claims_about_kappa_decide_the_verdict():
    tree = MinimumFeatures(**{**TINY, "hypotheses": ["H3"]}).run()
    observed = tree.observed
    assert observed["holds"].dims == ("hypothesis",)
    assert set(observed["holds"].to_numpy()) <= {"holds", "does not hold", "undecided"}
    assert tree.quantities == {}
    assert [name for name, each in tree.claims.items() if each.decides] == ["H3 (1)"]
    assert observed["metric"].to_series()["H3 (1)"] == "kappa_cka"
    assert set(tree.checks) == {
        f"{name}{kind}" for name in ("total_utilization", "dimension_bound") for kind in ("", "_maximum")
    }
    assert figures(tree) == ["kappa_cka_change", "accuracy_change", "kappa_cka", "cumulative_utilization"]


@pytest.mark.slow
@pytest.mark.parametrize(("sign", "verdict"), [(-1, "agree"), (1, "disagree")])
def test_the_effect_of_weight_decay_decides_the_verdict(monkeypatch, sign, verdict):
    measured = Experiment.measured
    # Weight decay is 0, 1/10, 1 and 10 times the default; the default run comes first.
    levels = iter([2, 0, 1, 3])

    def moved(self, trained):
        found = measured(self, trained)
        return found | {"kappa_cka": 0.5 + sign * 0.1 * next(levels) + 0.01 * np.arange(len(trained))}

    monkeypatch.setattr(Experiment, "measured", moved)
    tree = MinimumFeatures(**{**TINY, "hypotheses": ["H3"]}).run()
    assert tree.verdict.outcome == verdict


def test_only_the_runs_of_the_chosen_hypotheses_are_predicted():
    predicted = MinimumFeatures(**{**TINY, "hypotheses": ["H2"]}).predict().record
    assert predicted["run"].to_numpy().tolist() == ["default", "learning rate × 0.01", "learning rate × 0.1"]
    predicted = MinimumFeatures(**{**TINY, "hypotheses": ["H7", "H9"]}).predict().record
    assert predicted["run"].to_numpy().tolist() == ["default", "scalar target", "rich"]


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"hypotheses": ["H0"]}, "hypotheses"),
        ({"hypotheses": []}, "hypotheses"),
        ({"samples": 40}, "samples"),
        ({"samples": 1797}, "samples"),
        ({"seeds": 1}, "seeds"),
        ({"network": "vgg"}, "network"),
        ({"loss": "hinge"}, "loss"),
        ({"epochs": 0}, "epochs"),
        ({"weight_decay": -1e-3}, "weight_decay"),
        ({"width": 8}, "width"),
        ({"data": "nowhere"}, "path"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_errors_name_the_invalid_field(fields, argument):
    with pytest.raises(InputError) as error:
        MinimumFeatures(**{**TINY, **fields}).predict()
    assert error.value.argument == argument


def test_the_effect_of_a_setting_is_the_change_from_its_lowest_to_its_highest_level():
    found = {
        "vgg": {"kappa_cka": np.array([0.50, 0.52]), "accuracy": np.full(2, np.nan)},
        "vgg-normalised": {"kappa_cka": np.array([0.20, 0.21]), "accuracy": np.full(2, np.nan)},
        "default": {"kappa_cka": np.zeros(2), "accuracy": np.zeros(2)},
    }
    (effect,) = setting_effects(["batch normalisation"], found, "kappa_cka")
    assert effect.change == pytest.approx(-0.305)
    assert effect.low <= effect.change <= effect.high < 0
    (unknown,) = setting_effects(["batch normalisation"], found, "accuracy")
    assert np.isnan(unknown.change)
