from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.symmetry.conservation_counts import study as conservation_counts
from dynascope.studies.symmetry.conservation_counts.study import ConservationCounts

STUDY = ConservationCounts(networks=["linear 2-2-2", "ReLU"], sizes=3)


@pytest.fixture(scope="module")
def observed():
    return STUDY.observe().record


@pytest.mark.slow
def test_laws_and_bounds_are_those_of_the_reference(observed):
    assert observed["laws"].to_numpy().tolist() == [3, 2]
    assert observed["bound"].to_numpy().tolist() == [4, 2]
    assert observed["moved"].min() > 0.01


@pytest.mark.slow
def test_one_law_more_in_the_closed_form_is_refuted(observed, monkeypatch):
    monkeypatch.setattr(conservation_counts, "_LAWS", conservation_counts._LAWS | {"ReLU": 3})
    assert STUDY.compared(observed, STUDY.predict().record).verdict.outcome == "disagree"


@pytest.mark.slow
def test_a_law_that_is_no_charge_is_told(observed):
    assert observed["holds"].to_series().to_dict() == {"no other laws": "holds", "read off the program": "holds"}
    fewer = {"laws": ("architecture", [3, 2]), "charges": ("architecture", [2, 2])}
    assert {each.name: each.outcome for each in STUDY.claimed(fewer)}["no other laws"] == "does not hold"


def test_random_sizes_are_different_and_as_many_as_asked_for():
    study = ConservationCounts(sizes=36, seed=3)
    assert len(set(study._named_sizes)) == 36
    assert np.max(study._random_sizes, axis=0).tolist() == [3, 3, 4]


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"networks": []}, "networks"),
        ({"networks": ["tanh"]}, "networks"),
        ({"networks": ["perceptron"]}, "networks"),
        ({"sizes": 37}, "sizes"),
        ({"samples": 3}, "samples"),
        ({"duration": 0.0}, "duration"),
    ],
)
def test_bad_fields_are_named(fields, argument):
    with pytest.raises(InputError) as caught:
        ConservationCounts(**fields)
    assert caught.value.argument == argument
