from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.flows.progress import progress_listener
from dynascope.studies.interventions.synflow.claims import pruning_claims
from dynascope.studies.interventions.synflow.experiment import METHODS, Measured, PrunedNetworks
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


@pytest.mark.slow
def test_the_expected_time_of_large_networks_is_announced_before_they_are_pruned(monkeypatch):
    def stopped(self, *names):
        raise InterruptedError

    monkeypatch.setattr(PrunedNetworks, "_critical", stopped)
    for networks, count in (["vgg"], 1), (["dense"], 0):
        said: list[str] = []
        study = Synflow(networks=networks, width=2)
        with pytest.raises(InterruptedError), progress_listener(lambda *report: None, announced=said.append):
            study.run()
        assert len(said) == count
        assert all(each.startswith("The run will take about ") for each in said)


def test_the_expected_time_counts_every_round_and_step():
    networks = Synflow(compressions=[10.0, 20.0], starts=3, steps=7)._networks
    # log₁₀ 4680 is 3.67, so 15 compressions are scanned.
    assert networks.counts("dense") == (3 * (15 + 2) * (100 + 1 + 2 * 4), 3 * 5 * 2 * 7)


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
