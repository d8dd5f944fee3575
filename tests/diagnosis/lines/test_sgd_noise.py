from __future__ import annotations

import math

import numpy as np
import pytest

from dynascope.diagnosis.lines.sgd_noise import sgd_noise
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results import make_record
from dynascope.theory import SGD
from dynascope.theory.noise import thermometer

STEPS = [0, 50, 100, 200, 400]
FLAT = (math.nan, 1.0, 0.5, 0.5, 0.5)


def facts(
    optimizer: str = "SGD",
    losses=FLAT,
    rates=(0.1,) * 5,
    curvature=(2.0, 0.5),
    batch_size: int | None = 8,
    settings=None,
    **measured,
):
    """A run of 400 steps in five rows."""
    rates = np.array(rates, float).reshape(5, -1)
    variables = {
        "learning_rate": (["step", "group"], rates),
        "mean_loss": (["step"], [*losses]),
        "curvature": (["step", "direction"], [[*curvature]] * 5),
        "reference_noise": (["step"], [4.0] * 5),
    }
    variables |= {name: (["step"], [*values]) for name, values in measured.items()}
    coordinates = {"step": STEPS, "group": list(range(rates.shape[1])), "direction": list(range(len(curvature)))}
    groups = [settings or {}] * rates.shape[1]
    return RunFacts(make_record(variables, coordinates), optimizer=optimizer, groups=groups, batch_size=batch_size)


def test_the_relaxation_time_is_that_of_the_slowest_recorded_direction():
    line = sgd_noise(facts(settings={"momentum": 0.5}))
    found = thermometer([2.0, 0.5], 4.0, SGD(0.1, 0.5, batch_size=8))
    assert line.state == "stationary"
    assert line.number == pytest.approx(400 / found.relaxation_steps.max())
    assert "arXiv:2107.09133" in line.theory


def test_a_run_shorter_than_three_relaxation_times_is_not_stationary():
    # 1/(ηρ) = 200 steps
    line = sgd_noise(facts(curvature=(0.05,)))
    assert line.state == "not stationary yet"
    assert line.number == pytest.approx(2.0, rel=0.01)


def test_a_loss_that_still_falls_is_not_stationary():
    line = sgd_noise(facts(losses=(math.nan, 1.0, 0.5, 0.4, 0.3)))
    assert line.state == "not stationary yet"
    assert line.number == pytest.approx(1 - 0.3 / 0.4)
    assert sgd_noise(facts(losses=(math.nan, 1.0, 0.5, 0.5, 0.48))).state == "stationary"


def test_the_noise_starts_again_when_the_learning_rate_changes():
    assert sgd_noise(facts(rates=(0.1, 0.1, 0.1, 0.1, 0.0001))).state == "not stationary yet"
    assert sgd_noise(facts(rates=(0.15, 0.1, 0.1, 0.1, 0.1))).state == "stationary"


def test_adamw_forgets_its_initial_weights():
    short = sgd_noise(facts("AdamW", settings={"weight_decay": 0.01}))
    assert short.state == "not stationary yet"
    assert short.number == pytest.approx(400 * 0.1 * 0.01)
    long = sgd_noise(facts("AdamW", settings={"weight_decay": 1.0}))
    assert long.state == "does not apply"
    assert sgd_noise(facts("AdamW", settings={"weight_decay": 0.0})).state == "does not apply"


def test_it_does_not_apply_to_other_training():
    assert sgd_noise(facts("Adam")).state == "does not apply"
    assert sgd_noise(facts("Adagrad")).state == "does not apply"
    assert sgd_noise(facts(settings={"momentum": 0.9, "nesterov": True})).state == "does not apply"
    assert sgd_noise(facts(epoch=STEPS)).state == "does not apply"
    assert sgd_noise(facts(rates=[[0.1, 0.2]] * 5)).state == "does not apply"
    assert sgd_noise(facts(curvature=(30.0, 0.5))).state == "does not apply"
    assert sgd_noise(facts(rates=(0.1, 0.1, 0.1, 0.1, 0.0))).state == "does not apply"


def test_missing_measurements_are_named():
    assert "batch_size" in sgd_noise(facts(batch_size=None)).sentence
    run = facts()
    for name, argument in (("curvature", "criterion"), ("learning_rate", "optimizer")):
        line = sgd_noise(RunFacts(run.record.drop_vars(name), optimizer="SGD", groups=[{}], batch_size=8))
        assert line.state == "not measured"
        assert argument in line.sentence


def test_a_regression_with_noise_becomes_stationary(tmp_path):
    torch = pytest.importorskip("torch")
    from dynascope.torch import Recorder

    draws = torch.Generator().manual_seed(0)
    inputs = torch.randn(512, 3, generator=draws)
    targets = inputs.sum(1, keepdim=True) + torch.randn(512, 1, generator=draws)
    states = []
    for rate in (0.05, 0.0005):
        model = torch.nn.Linear(3, 1)
        optimizer, criterion = torch.optim.SGD(model.parameters(), lr=rate), torch.nn.MSELoss()
        preset = ["curvature", "batches"]
        options = {"optimizer": optimizer, "criterion": criterion, "preset": preset, "batch_size": 8, "verbose": False}
        with Recorder(model, tmp_path / f"{rate}.zarr", reference=(inputs, targets), **options) as recorder:
            for _ in range(400):
                rows = torch.randint(512, (8,), generator=draws)
                optimizer.zero_grad()
                loss = criterion(model(inputs[rows]), targets[rows])
                loss.backward()
                optimizer.step()
                recorder.step(loss=loss)
        run = RunFacts(recorder.read(), optimizer="SGD", groups=[{"momentum": 0.0}], batch_size=8)
        states.append(sgd_noise(run).state)
    assert states == ["stationary", "not stationary yet"]
