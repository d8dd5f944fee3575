from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies import Study, find_study, memory

CELLS = {
    "single-neuron": [{"imbalance": 1.0}, {"imbalance": 0.0}, {"imbalance": -2.0, "initial_strength": 0.3}],
    "lambda-balanced": [{"initial_size": 0.3}, {"initial_size": 0.1, "largest_balance": 2.0}],
    "student-teacher": [{"seed": 0}, {"overall_scales": [0.12, 0.45, 2.0], "relative_scales": [-0.8, 1.0]}],
}


@pytest.mark.parametrize("name", CELLS)
def test_studies_that_are_trained_together_measure_what_they_measure_alone(name):
    study = find_study(name)
    studies = [study(**{**study.tiny, **fields}) for fields in CELLS[name]]
    assert {field for fields in CELLS[name] for field in fields} <= set(study.batched)
    for each, together in zip(studies, study.observe_many(studies), strict=True):
        alone = each.observe().record
        assert set(alone.data_vars) == set(together.record.data_vars)
        for quantity in each.tolerance.keys() & alone.keys():
            np.testing.assert_allclose(together[quantity], alone[quantity], rtol=1e-6, atol=1e-8)
        assert each.compare(together, each.predict()).verdict.outcome == "agree"


@pytest.mark.parametrize("name", ["single-neuron", "lambda-balanced"])
def test_studies_that_do_not_fit_in_memory_are_trained_in_parts(name, monkeypatch):
    study = find_study(name)
    studies = [study(**{**study.tiny, **fields}) for fields in CELLS[name]]
    sizes = []
    monkeypatch.setattr(memory, "MEMORY", study.memory(studies[:1]))
    monkeypatch.setattr(study, "trained_many", lambda part: sizes.append(len(part)) or Study.trained_many(part))
    assert len(study.observe_many(studies)) == len(studies)
    assert sizes == [1] * len(studies)
