from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.diagnosis.lines.normalised_layers import normalised_layers
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results import make_record
from dynascope.symmetry import Charge, Part

SCALE = Charge("scale", (Part("['a.weight']", np.zeros((2, 1), int), 1.0),), 1)
OTHER = Charge("translation", (Part("['b.bias']", np.zeros(2, int), 1.0),), 1)


def facts(decay=0.1, rates=(0.1, 0.1), symmetries=(OTHER, SCALE), optimizer="SGD", **settings):
    """A run of 1000 steps whose normalised layer rotates by 0.02 rad per step."""
    record = make_record(
        {
            "learning_rate": (["step", "group"], [[rates[0], 1.0], [rates[1], 1.0]]),
            "parameter_group": (["parameter"], [0, 1]),
            "weight_norm": (["step", "parameter"], [[1.0, 9.0], [2.0, 9.0]]),
            "update_norm": (["step", "parameter"], [[np.nan, np.nan], [0.04, 9.0]]),
        },
        {"step": [0, 1000], "parameter": ["a.weight", "b.bias"], "group": [0, 1]},
    )
    groups = [{"weight_decay": decay, **settings}, {"weight_decay": 0.0, **settings}]
    return RunFacts(record, symmetries=symmetries, optimizer=optimizer, groups=groups)


def test_a_long_run_is_stationary_and_a_short_one_is_not():
    line = normalised_layers(facts(momentum=0.9))
    assert line.state == "stationary"
    assert line.number == pytest.approx(0.02)
    assert line.threshold == pytest.approx((2 * 0.1 * 0.1 / 1.9) ** 0.5)
    assert normalised_layers(facts(decay=1e-3)).state == "not stationary yet"


def test_the_length_of_the_run_counts_every_learning_rate():
    # Σ 4ηλ = 4 × 0.001 × 1000 × mean rate
    assert normalised_layers(facts(decay=1e-3, rates=(1.9, 0.01))).state == "stationary"
    assert normalised_layers(facts(decay=1e-3, rates=(0.19, 0.01))).state == "not stationary yet"


def test_other_training_has_no_known_equilibrium():
    for run in (
        facts(decay=0.0),
        facts(optimizer="AdamW", betas=(0.9, 0.99)),
        facts(momentum=0.9, nesterov=True),
        facts(symmetries=(OTHER,)),
    ):
        assert normalised_layers(run).state == "does not apply"
    line = normalised_layers(facts(symmetries=()))
    assert line.state == "not measured"
    assert "charges=True" in line.sentence
    assert normalised_layers(dataclasses.replace(facts(), optimizer="")).state == "does not apply"


def test_a_real_run_rotates_at_the_equilibrium_once_it_is_stationary(tmp_path):
    torch = pytest.importorskip("torch")
    from dynascope.torch import Recorder

    draws = torch.Generator().manual_seed(0)
    inputs, labels = torch.randn(512, 5, generator=draws), torch.randint(3, (512,), generator=draws)
    torch.manual_seed(0)
    layers = torch.nn.Linear(5, 16, bias=False), torch.nn.BatchNorm1d(16, eps=1e-12), torch.nn.ReLU()
    model = torch.nn.Sequential(*layers, torch.nn.Linear(16, 3))
    groups = [{"params": [model[0].weight], "weight_decay": 0.02}, {"params": [*model[1:].parameters()]}]
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.5)
    charge = Charge("scale", (Part("['0.weight']", np.arange(16)[:, None], 1.0),), 16)
    options = {"optimizer": optimizer, "preset": ["weights"], "schedule": 20, "verbose": False}
    states = []
    with Recorder(model, tmp_path / "run.zarr", reference=(inputs, labels), **options) as recorder:
        for step in range(600):
            rows = torch.randint(512, (16,), generator=draws)
            loss = torch.nn.functional.cross_entropy(model(inputs[rows]), labels[rows])
            loss.backward()
            optimizer.step()
            recorder.step(loss=loss)
            optimizer.zero_grad()
            if step in (60, 599):
                settings = [{"momentum": 0.5, "weight_decay": decay} for decay in (0.02, 0.0)]
                run = RunFacts(recorder.read(), symmetries=(charge,), optimizer="SGD", groups=settings)
                states.append(normalised_layers(run))
    early, late = states
    assert [early.state, late.state] == ["not stationary yet", "stationary"]
    assert abs(late.number / late.threshold - 1) < 0.25 < abs(early.number / early.threshold - 1)
