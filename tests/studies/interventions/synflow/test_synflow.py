from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.interventions.synflow.claims import pruning_claims
from dynascope.studies.interventions.synflow.experiment import METHODS, Measured
from dynascope.studies.interventions.synflow.study import Synflow


@pytest.fixture(scope="module")
def result():
    return Synflow(**Synflow.tiny).run()


@pytest.mark.slow
def test_synflow_reaches_the_maximal_compression_and_the_other_methods_do_not(result):
    found = result.observed["critical_compression"].sel(architecture="dense")
    assert (found.sel(rule="synflow") == 4680).all()
    assert (found.sel(rule=list(METHODS[1:])).max("rule") < 4680).all()
    assert result.quantities["synflow_compression"].agrees


@pytest.mark.slow
def test_a_network_without_a_path_answers_by_chance(result):
    lost = result.observed["path_exists"] == 0
    assert lost.any()
    assert result.observed["mean_accuracy"].where(lost).max() < 0.25


def test_claims_turn_with_the_measurements():
    draw = np.random.default_rng(0)
    critical = np.broadcast_to(np.array([4680.0, 1000, 100, 30, 30])[None, :, None], (1, 5, 4)).copy()
    paths = np.zeros((1, 5, 2, 4), bool)
    paths[:, 0] = True
    accuracy = np.where(paths, 0.5, 0.1) + 0.01 * draw.normal(size=paths.shape)
    maximal = np.array([4680.0])

    def outcomes(**changes):
        found = Measured(critical, maximal, paths, accuracy, accuracy)._replace(**changes)
        return {each.name.split(",")[0]: each.outcome for each in pruning_claims(["dense"], found)}

    assert set(outcomes().values()) == {"holds"}
    assert outcomes(critical=critical[:, ::-1])["beyond"] == "does not hold"
    assert outcomes(accuracy=1 - accuracy)["accuracy"] == "does not hold"
    assert outcomes(accuracy=1 - accuracy)["no data"] == "does not hold"
    assert outcomes(paths=np.ones_like(paths))["accuracy"] == "undecided"


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"networks": ["transformer"]}, "networks"),
        ({"compressions": [0.5]}, "compressions"),
        ({"compressions": [30.0, 10.0]}, "compressions"),
        ({"starts": 1}, "starts"),
        ({"samples": 10}, "samples"),
        ({"test_samples": 10}, "test_samples"),
    ],
)
def test_bad_fields_are_named(fields, argument):
    with pytest.raises(InputError) as caught:
        Synflow(**fields)
    assert caught.value.argument == argument
