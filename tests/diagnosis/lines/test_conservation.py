from __future__ import annotations

import numpy as np
import pytest
import torch
from diagnosed_runs import facts, relu_network

from dynascope.diagnosis.lines.conservation import conservation
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.symmetry import find_symmetries
from dynascope.torch import watch_charges


def nothing(network):
    pass


def clip_each(network):
    for each in network.parameters():
        torch.nn.utils.clip_grad_norm_([each], 0.02)


def clip_all(network):
    torch.nn.utils.clip_grad_norm_(network.parameters(), 0.02)


def run_with(before_step=nothing, after_step=nothing, *, causes=True, zero=True):
    network = relu_network(4, 8, 3).double()
    draw = torch.Generator().manual_seed(1)
    x, y = torch.randn(30, 4, generator=draw, dtype=torch.float64), torch.arange(30) % 3
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
    symmetries = find_symmetries(network, None, x).symmetries
    with watch_charges(network, optimizer, symmetries, causes=causes) as watched:
        for _ in range(15):
            if zero:
                optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(x), y).backward()
            before_step(network)
            optimizer.step()
            after_step(network)
        record = watched.record()
    # The names of a recorder.
    names = {name: f"cause_{name}" for name, values in record.items() if "layer" in values.dims}
    record = record.rename(names | ({"layer": "cause_parameter"} if "layer" in record.dims else {}))
    return RunFacts(record, symmetries=tuple(symmetries), optimizer="SGD")


def double_first_layer(network):
    with torch.no_grad():
        network[0].weight *= 1.01


@pytest.fixture(scope="module")
def clean():
    return run_with()


@pytest.mark.slow
def test_laws_hold_in_a_correct_loop_and_break_if_tensors_are_clipped_separately(clean):
    kept, broken = conservation(clean), conservation(run_with(clip_each))
    assert (kept.state, broken.state) == ("laws hold", "laws broken")
    assert kept.number <= kept.threshold < broken.number
    assert "clipping by tensor" in broken.sentence
    assert "step 1," in broken.sentence
    assert "clip_grad_norm_(model.parameters()" in broken.action


@pytest.mark.slow
def test_clipping_by_the_global_norm_breaks_no_law_of_the_gradient():
    # The watched gradient contains factors that are common to all parameters.
    assert conservation(run_with(clip_all)).state == "laws hold"


@pytest.mark.slow
def test_changed_weights_are_named_as_the_cause():
    line = conservation(run_with(after_step=double_first_layer))
    assert line.state == "laws broken"
    assert "weights changed between steps" in line.sentence
    assert "outside `optimizer.step()`" in line.action


@pytest.mark.slow
def test_without_recorded_causes_the_action_is_to_record_them():
    line = conservation(run_with(clip_each, causes=False))
    assert line.state == "laws broken"
    assert "causes=True" in line.action


@pytest.mark.slow
@pytest.mark.parametrize("name", ["measured_charge", "cause_gradient_norm"])
def test_rows_after_divergence_are_dropped(clean, name):
    record = clean.record.copy(deep=True)
    record[name][-3:] = np.nan
    line = conservation(RunFacts(record, symmetries=clean.symmetries, optimizer="SGD"))
    assert line.state == "laws hold"
    assert "12 recorded steps" in line.sentence


@pytest.mark.slow
def test_a_run_that_diverged_at_once_tests_no_law(clean):
    record = clean.record.copy(deep=True)
    record["measured_charge"][1:] = np.nan
    run = RunFacts(record, symmetries=clean.symmetries, optimizer="SGD")
    assert conservation(run).state == "not measured"


@pytest.mark.parametrize(
    ("optimizer", "state"), [("SGD", "not measured"), ("", "not measured"), ("AdamW", "does not apply")]
)
def test_without_charges_the_optimiser_decides_whether_laws_could_be_tested(optimizer, state):
    assert conservation(facts({"loss": [1.0, 0.5]}, optimizer=optimizer)).state == state
