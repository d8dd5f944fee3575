from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.interventions.saliency_conservation import experiment
from dynascope.studies.interventions.saliency_conservation.study import SaliencyConservation
from dynascope.studies.interventions.saliency_conservation.zoo import ZOO


def tiny(**changes):
    return SaliencyConservation(**{**SaliencyConservation.tiny, **changes})


@pytest.mark.slow
def test_both_laws_and_all_violations_are_as_predicted():
    result = tiny(networks=list(ZOO)).run()
    assert result.verdict.outcome == "agree"
    assert max(each.error for each in result.quantities.values()) < 1e-12
    for name in ("grasp_difference", "tanh_difference", "running_mean_difference"):
        assert np.abs(result.observed[name]).max() > 0.05


@pytest.mark.slow
def test_a_law_without_biases_is_refuted():
    study = tiny()
    observed, predicted = study.observe().record, study.predict().record
    assert study.compared(observed, predicted).verdict.outcome == "agree"
    fewer = predicted.assign(cut_saliency=predicted["cut_saliency"] * 1.001)
    assert study.compared(observed, fewer).verdict.outcome == "disagree"


@pytest.mark.slow
def test_another_defect_of_grasp_is_refuted(monkeypatch):
    monkeypatch.setattr(experiment, "grasp_defect", lambda entering, leaving: np.sum(entering**2 - leaving**2, axis=1))
    assert tiny().run().verdict.outcome == "disagree"


@pytest.mark.parametrize(
    ("fields", "argument"),
    [({"networks": ["perceptron"]}, "networks"), ({"draws": 0}, "draws"), ({"samples": 1}, "samples")],
)
def test_bad_fields_are_named(fields, argument):
    with pytest.raises(InputError) as caught:
        SaliencyConservation(**fields)
    assert caught.value.argument == argument
