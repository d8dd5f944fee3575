from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tiny_runs import tiny_run

from dynascope.errors import InputError
from dynascope.studies.margins.max_margin import classifiers, experiment
from dynascope.studies.margins.max_margin.study import MaxMargin
from dynascope.theory import margins

STUDY = MaxMargin(**MaxMargin.tiny)


@pytest.fixture(scope="module")
def observed():
    return tiny_run("max-margin").observed


@pytest.mark.slow
def test_the_verified_examples_to_their_digits(observed):
    tree = STUDY.compared(observed, STUDY.predict().record)
    assert tree.verdict.outcome == "agree"
    told = observed["end_euclidean_margin"].sel(architecture=["linear", "mixed"])
    # Off by a constant over ν = 1e5.
    np.testing.assert_allclose(told, [1.019803902719, 0.330409300228], rtol=2e-5)
    np.testing.assert_allclose(observed["weights"].sel(architecture="mixed"), [0.4, 3.0], atol=1e-4)
    assert float(observed["random_distance"].max()) < 1e-4
    spread = {
        name: float(observed[f"{name}_nc1"].isel(margin_level=-1).mean()) for name in ("normalised", "unnormalised")
    }
    assert spread["normalised"] < 1e-9 < 1e-3 < spread["unnormalised"]


@pytest.mark.slow
@pytest.mark.parametrize("factors", [{"mixed": [1, 1]}, {"linear": [2, 2]}, {"products": [1, 1]}])
def test_the_margin_of_another_norm_refutes_it(observed, monkeypatch, factors):
    monkeypatch.setattr(experiment, "FACTORS", classifiers.FACTORS | factors)
    tree = STUDY.compared(observed, dataclasses.replace(STUDY).predict().record)
    assert tree.verdict.outcome == "disagree"


@pytest.mark.slow
def test_features_of_more_classes_refute_it(observed, monkeypatch):
    simplex = margins.simplex_margin
    monkeypatch.setattr(margins, "simplex_margin", lambda classes: simplex(classes)._replace(value=simplex(4).value))
    tree = STUDY.compared(observed, STUDY.predict().record)
    wrong = [name for name, each in tree.quantities.items() if not each.agrees]
    assert wrong == ["classifier_cost", "classifier_cost_maximum"]


def test_random_data_do_not_depend_on_training_and_have_their_sizes():
    predicted = STUDY.predict()
    assert predicted["random_weights"].shape == (4, 1, 3)
    assert (predicted["random_own_error"] < 1e-5).all()
    # Inputs that a data set does not have come first, and have no weight.
    assert (predicted["random_weights"].sel(run=["linear, 2", "mixed, 2"]).isel(weight=0) == 0).all()


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("features", {"features": 5, "classes": 5}),
        ("gap", {"gap": 0.5}),
        ("inputs", {"inputs": [2, 2]}),
        ("inputs", {"inputs": [1]}),
        ("likeness", {"likeness": 1.0}),
    ],
)
def test_bad_fields_are_named(argument, change):
    with pytest.raises(InputError) as caught:
        MaxMargin(**change)
    assert caught.value.argument == argument
