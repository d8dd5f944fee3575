from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dynascope.diagnosis.lines.stability import stability
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results import make_record

RATE = 0.1


def facts(optimizer="SGD", batch_size=None, losses=(1.0, 0.5, 0.4), rates=(RATE,) * 3, settings=None, **measured):
    """A run of three rows; a measured variable has one value per row."""
    rates = np.array(rates, float).reshape(3, -1)
    variables = {"learning_rate": (["step", "group"], rates), "mean_loss": (["step"], [*losses])}
    variables |= {name: (["step"], [*values]) for name, values in measured.items()}
    record = make_record(variables, {"step": [1, 10, 100], "group": list(range(rates.shape[1]))})
    return RunFacts(record, optimizer=optimizer, groups=[settings or {}] * rates.shape[1], batch_size=batch_size)


def rows(last, before=1.0):
    return (math.nan, before, last)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_full_batches_are_stable_below_the_limit_and_at_the_edge_near_it(momentum):
    limit = 2 * (1 + momentum) / RATE
    for share, state in ((0.5, "stable"), (1.0, "at the edge"), (2.0, "at the edge")):
        line = stability(facts(sharpness=rows(share * limit), settings={"momentum": momentum}))
        assert line.state == state
        assert (line.number, line.threshold) == (pytest.approx(share * limit), pytest.approx(limit))
    assert "2103.00065" in line.theory


def test_weight_decay_dampening_and_nesterov_change_the_limit():
    def limit(**settings):
        return stability(facts(sharpness=rows(1.0), settings={"momentum": 0.9, **settings})).threshold

    assert limit(weight_decay=0.5) == pytest.approx(38 - 0.5)
    assert limit(dampening=0.5) == pytest.approx(2 * 38)
    assert limit(nesterov=True) == pytest.approx(38 / 2.8)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_small_batches_are_compared_by_their_batch_sharpness(momentum):
    noise: dict[str, Any] = {"reference_noise": rows(64.0, 64.0), "reference_signal": rows(1.0)}
    options: dict[str, Any] = {
        "sharpness": rows(1.0),
        "batch_sharpness": rows(1.9, 1.9),
        "settings": {"momentum": momentum},
        **noise,
    }
    small, large = stability(facts(batch_size=16, **options)), stability(facts(batch_size=128, **options))
    assert small.threshold == pytest.approx(2 * (1 - momentum) / RATE)
    assert small.state == ("stable" if momentum == 0 else "at the edge")
    assert "small batches" in small.sentence
    assert large.threshold == pytest.approx(2 * (1 + momentum) / RATE)
    assert large.state == "stable"
    assert ("2604.14108" if momentum else "2412.20553") in small.theory


def test_one_batch_per_epoch_is_a_full_batch():
    noise: dict[str, Any] = {"reference_noise": rows(64.0), "reference_signal": rows(1.0), "batch_sharpness": rows(1.0)}
    line = stability(facts(batch_size=16, sharpness=rows(1.0), epoch=(1, 10, 100), **noise))
    assert "each epoch is one batch" in line.sentence
    assert line.threshold == pytest.approx(2 / RATE)


@pytest.mark.parametrize("optimizer", ["Adam", "AdamW"])
def test_adam_is_compared_by_its_preconditioned_sharpness(optimizer):
    settings = {"betas": (0.9, 0.999)}
    for share, state in ((0.3, "stable"), (1.0, "at the edge")):
        line = stability(facts(optimizer, preconditioned_sharpness=rows(share * 380), settings=settings))
        assert line.state == state
        assert line.threshold == pytest.approx(38 / RATE)
    # The sharpness itself has no limit for Adam.
    line = stability(facts(optimizer, sharpness=rows(1e9), settings=settings))
    assert line.state == "does not apply"
    assert "Recorder" in line.sentence


def test_a_run_that_diverged_is_unstable_whatever_was_measured():
    for losses in ((1.0, 5.0, 0.8), (1.0, math.nan, math.nan)):
        options: dict[str, Any] = {"losses": losses, "loss_count": (1, 9, 90)}
        assert stability(facts(**options)).state == "unstable"
        assert stability(facts("Adagrad", **options)).state == "unstable"
        line = stability(facts(sharpness=(40.0, math.nan, math.nan), **options))
        assert line.state == "unstable"
        assert line.weight == 3
    # The largest stable rate is half of the rate, and the advised one an eighth.
    assert "0.0125" in line.action or "0.013" in line.action


def test_a_loss_that_rose_at_the_limit_and_did_not_recover_is_unstable():
    rose: dict[str, Any] = {"losses": (1.0, 2.0, 1.1)}
    assert stability(facts(sharpness=rows(1.0, before=25.0), **rose)).state == "unstable"
    assert stability(facts(sharpness=rows(1.0, before=1.0), **rose)).state == "stable"


def test_the_limit_is_that_of_the_learning_rate_in_the_same_row():
    line = stability(facts(sharpness=(math.nan, 15.0, math.nan), rates=(RATE, RATE, RATE / 100)))
    assert line.threshold == pytest.approx(2 / RATE)


def test_without_a_curvature_the_loss_decides():
    line = stability(facts())
    assert line.state == "stable"
    assert "loss alone" in line.sentence
    assert "criterion" in line.sentence


def test_other_training_has_no_limit():
    assert stability(facts("Adagrad", sharpness=rows(1.0))).state == "does not apply"
    assert stability(facts(sharpness=rows(1.0), rates=[[0.1, 0.2]] * 3)).state == "does not apply"
    assert stability(facts(sharpness=rows(1.0), settings={"maximize": True})).state == "does not apply"
    assert stability(facts("", sharpness=rows(1.0))).state == "not measured"
    assert stability(RunFacts(facts().record.drop_vars("mean_loss"), optimizer="SGD")).state == "not measured"


def test_a_real_run_at_a_larger_learning_rate_is_unstable(tmp_path):
    torch = pytest.importorskip("torch")
    from dynascope.torch import Recorder

    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(64, 4, generator=generator)
    targets = torch.sin(inputs[:, :1])
    states = []
    for rate in (0.05, 2.0):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
        optimizer, criterion = torch.optim.SGD(model.parameters(), lr=rate), torch.nn.MSELoss()
        options = {"optimizer": optimizer, "criterion": criterion, "preset": ["curvature"], "verbose": False}
        with Recorder(model, tmp_path / f"{rate}.zarr", reference=(inputs, targets), **options) as recorder:
            for _ in range(60):
                optimizer.zero_grad()
                loss = criterion(model(inputs), targets)
                loss.backward()
                optimizer.step()
                recorder.step(loss=loss)
        states.append(stability(RunFacts(recorder.read(), optimizer="SGD", groups=[{"momentum": 0.0}])).state)
    assert states == ["stable", "unstable"]


@pytest.mark.parametrize("reference", [None, (1.0, 0.6, 0.3), (1.0, 20.0, 0.3)])
def test_a_large_loss_of_one_small_batch_is_no_divergence(reference):
    losses = {} if reference is None else {"reference_loss": reference}
    line = stability(facts(losses=(0.2, 4.0, 0.05), sharpness=(1.0, 1.0, 1.0), batch_size=8, **losses))
    assert (line.state == "unstable") == (reference is not None and max(reference) > 4)
