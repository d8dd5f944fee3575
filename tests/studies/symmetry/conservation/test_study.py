from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.symmetry.conservation.experiment import network_symmetries
from dynascope.studies.symmetry.conservation.study import Conservation

STUDY = Conservation(networks=["deep linear", "epsilon"], times=200)


@pytest.fixture(scope="module")
def observed():
    return STUDY.observe().record


def outcomes(tree):
    return {name: each.outcome for name, each in tree.claims.items() if each.decides}


@pytest.mark.slow
def test_charges_stay_by_many_digits_while_weights_move(observed):
    assert (observed["moved"].isel(time=-1) > 0.1).all()
    assert observed["drift"].sel(architecture="deep linear").max() < 1e-9
    # Two matrices of five hidden neurons, and three channels.
    assert observed.sizes["charge"] == 15 + 15 + 3


@pytest.mark.slow
def test_what_epsilon_moves_is_the_integral_and_goes_with_epsilon(observed):
    change, integral = observed["epsilon_change"], observed["epsilon_integral"]
    assert np.abs(change).max() > 1e-6
    np.testing.assert_allclose(change, integral, atol=1e-3 * float(np.abs(change).max()))
    larger = dataclasses.replace(STUDY, networks=["epsilon"], epsilon=1e-3).observe()
    ratio = float(np.abs(larger["epsilon_change"]).max() / np.abs(change).max())
    assert ratio == pytest.approx(100, rel=0.1)


@pytest.mark.slow
def test_half_the_defect_is_refuted(observed):
    found = {name: (each.dims, each.to_numpy()) for name, each in observed.data_vars.items()}
    found |= {name: found[name][1] for name in ("moved", "drift")}
    claims = {each.name: each.outcome for each in STUDY.claimed(found)}
    assert claims == {"weights move": "holds", "exactly": "holds", "epsilon": "holds"}
    axes, integral = found["epsilon_integral"]
    claims = {each.name: each.outcome for each in STUDY.claimed(found | {"epsilon_integral": (axes, integral / 2)})}
    assert claims["epsilon"] == "does not hold"


@pytest.mark.slow
def test_a_charge_that_is_none_is_refuted(observed):
    wrong = observed.copy(deep=True)
    # As if the norms of one layer were conserved by themselves.
    wrong["charges"][0] += 0.01 * observed["moved"].sel(architecture="deep linear").to_numpy()
    tree = STUDY.compared(wrong, STUDY.predict().record)
    assert tree.verdict.outcome == "disagree"
    assert set(outcomes(tree)) == {"exactly", "epsilon"}


def test_an_epsilon_below_what_the_solver_resolves_decides_nothing():
    study = dataclasses.replace(STUDY, networks=["epsilon"], epsilon=1e-9)
    integral = np.array([[0.0, 1e-10]])
    found = {"moved": [[0.0, 0.5]], "epsilon_change": ((), integral), "epsilon_integral": ((), integral)}
    assert study.claimed(found)[-1].outcome == "undecided"


@pytest.mark.slow
def test_without_epsilon_its_effect_is_neither_claimed_nor_drawn():
    study = Conservation(networks=["ReLU"], times=200)
    result = study.run()
    assert study.deciding_claims == ()
    assert [chart.variables for chart in result.charts] == [("moved", "drift"), ("loss",)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ReLU", "transformer"])
def test_networks_have_as_many_charges_as_units_and_matrices(name):
    # Hidden units; matrices of queries and keys and of values and outputs of two heads, hidden units, and gains.
    expected = {"ReLU": 6 + 5, "transformer": 2 * (3 + 3) + 6 + 4 + 4}
    assert sum(each.size for each in network_symmetries(name)) == expected[name]


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"networks": []}, "networks"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 0.1}, "epsilon"),
        ({"samples": 2}, "samples"),
        ({"duration": 0.1}, "duration"),
        ({"times": 10}, "times"),
    ],
)
def test_bad_fields_are_named(fields, argument):
    with pytest.raises(InputError) as caught:
        Conservation(**fields)
    assert caught.value.argument == argument
