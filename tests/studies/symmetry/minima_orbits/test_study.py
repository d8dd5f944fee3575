from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.symmetry.minima_orbits.experiment import FLAT_DIRECTIONS
from dynascope.studies.symmetry.minima_orbits.study import MinimaOrbits

STUDY = MinimaOrbits(networks=["linear 2-2-2", "ReLU"], balances=2, places=2)


@pytest.fixture(scope="module")
def observed():
    return STUDY.observe().record


@pytest.mark.slow
def test_flat_directions_are_those_of_the_group_and_far_from_all_others(observed):
    assert observed["flat_directions"].to_numpy().tolist() == [4, 2]
    assert (observed["least_curvature"] > 1e4 * observed["orbit_curvature"]).all()
    assert (observed["loss"] < 1e-24).all()


@pytest.mark.slow
def test_the_flattest_minimum_is_that_of_equal_layers_on_the_orbit():
    predicted = MinimaOrbits(networks=["ReLU"], balances=3, places=1).predict()
    ends = predicted["sharpness"].sel(along=0).to_numpy()
    np.testing.assert_allclose(ends, np.sqrt([32, 16, 32]))


@pytest.mark.slow
def test_a_map_of_another_strength_is_refuted(observed):
    other = dataclasses.replace(STUDY, strongest=1.01 * STUDY.strongest)
    assert STUDY.compared(observed, other.predict().record).verdict.outcome == "disagree"


@pytest.mark.slow
def test_a_direction_more_in_the_group_is_refuted(observed, monkeypatch):
    monkeypatch.setitem(FLAT_DIRECTIONS, "ReLU", 3)
    assert STUDY.compared(observed, STUDY.predict().record).verdict.outcome == "disagree"


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"networks": ["tanh"]}, "networks"),
        ({"samples": 3}, "samples"),
        ({"inputs": 1}, "inputs"),
        ({"weakest": 3.0}, "weakest"),
        ({"largest_balance": 21.0}, "largest_balance"),
        ({"distance": 5.0}, "distance"),
        ({"places": 0}, "places"),
    ],
)
def test_bad_fields_are_named(fields, argument):
    with pytest.raises(InputError) as caught:
        MinimaOrbits(**fields)
    assert caught.value.argument == argument
