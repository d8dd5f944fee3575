from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.interventions import check_twin
from dynascope.interventions import regime_dial as dial_in_either
from dynascope.networks import MLP
from dynascope.tasks import Task
from dynascope.theory.regimes import OptimizerSettings
from dynascope.training import Descent, descend

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  after what it needs was asked for

from dynascope.torch import Recorder, regime_dial  # noqa: E402

DRAW = np.random.default_rng(0)
TASK = Task(DRAW.normal(size=(16, 5)), DRAW.normal(size=(16, 2)))
SGD = OptimizerSettings("sgd", 0.02, coupled_decay=0.01)
ADAM = OptimizerSettings("adam", 0.005, epsilon=1e-3)
SETTINGS = {
    "SGD": SGD,
    "momentum": dataclasses.replace(SGD, momentum=0.9),
    "Nesterov": dataclasses.replace(SGD, momentum=0.9, nesterov=True),
    "dampening": dataclasses.replace(SGD, momentum=0.9, dampening=0.1),
    "Adam": dataclasses.replace(ADAM, coupled_decay=0.01),
    "AdamW": dataclasses.replace(ADAM, decoupled_decay=0.01),
}
# Dials of equal effective output scale 8.
DIALS = [
    {"target_scale": 1 / 8},
    {"init_scale": 2.0},
    {"input_scale": 8.0},
    {"layer_scales": [0.5, 1.0, 16.0]},
    {"output_scale": 0.5, "input_scale": 4.0, "layer_scales": [2.0, 1.0, 1.0], "target_scale": 0.5},
]


def module(dtype=torch.float64):
    torch.manual_seed(0)
    parts = [nn.Linear(5, 12), nn.ReLU(), nn.Sequential(nn.Linear(12, 9, bias=False), nn.LeakyReLU(0.25))]
    return nn.Sequential(*parts, nn.Linear(9, 2)).to(dtype)


def losses(dial, target_scale=1.0, *, steps=120, scheduler=None):
    """The losses as tensors, in batches, divided by the square of the target scale."""
    optimizer, order = dial.optimizer(), np.random.default_rng(1)
    schedule = None if scheduler is None else scheduler(optimizer)
    found = []
    for _ in range(steps):
        rows = torch.as_tensor(order.choice(16, 6, replace=False))
        loss = nn.functional.mse_loss(dial.network(dial.inputs[rows]), dial.targets[rows])
        found.append(loss / target_scale**2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if schedule is not None:
            schedule.step()
    return found


@pytest.mark.parametrize("name", SETTINGS)
def test_dials_of_equal_effective_output_scale_are_bit_identical(name):
    base = losses(regime_dial(TASK, module(), SETTINGS[name], output_scale=8.0))
    assert float(base[-1]) < float(base[0])
    for scales in DIALS:
        dial = regime_dial(TASK, module(), SETTINGS[name], **scales)
        assert (dial.regime, dial.output_scale) == ("lazier", 8)
        found = check_twin(base, losses(dial, scales.get("target_scale", 1.0)))
        assert found.identical, scales
    changed = check_twin(base, losses(regime_dial(TASK, module(), SETTINGS[name], output_scale=4.0)))
    assert not changed.rounding_suffices


def test_compensating_dials_repeat_training_without_the_dial():
    plain = module()
    optimizer = torch.optim.AdamW(plain.parameters(), lr=0.005, eps=1e-3, weight_decay=0.01)
    x, y = torch.tensor(TASK.inputs), torch.tensor(TASK.targets)
    base, found = [], []
    dial = regime_dial((x, y), module(), SETTINGS["AdamW"], init_scale=2.0, output_scale=1 / 8)
    assert dial.regime == "twin"
    for network, chosen, kept in ((plain, optimizer, base), (dial.network, dial.optimizer(), found)):
        for _ in range(100):
            loss = nn.functional.mse_loss(network(x), y)
            kept.append(loss)
            chosen.zero_grad()
            loss.backward()
            chosen.step()
    assert check_twin(base, found).identical


def test_the_module_is_unchanged():
    given = module()
    weights = [each.detach().clone() for each in given.parameters()]
    regime_dial(TASK, given, SGD, init_scale=2.0, input_scale=4.0)
    assert all(torch.equal(*pair) for pair in zip(given.parameters(), weights, strict=True))


def test_the_run_is_that_of_jax():
    network = MLP((5, 12, 9, 2))
    given = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 2)).double()
    with torch.no_grad():
        for layer, weight in zip(list(given)[::2], network.weights, strict=True):
            layer.weight.copy_(torch.tensor(weight).T)
            layer.bias.zero_()
    scales = {"init_scale": 1.3, "input_scale": 0.7, "layer_scales": [1.0, 2.0, 0.8]}
    jax_dial = dial_in_either(TASK, network, SETTINGS["Nesterov"], **scales)
    dial = dial_in_either(TASK, given, SETTINGS["Nesterov"], **scales)
    assert dial.output_scale == pytest.approx(jax_dial.output_scale, rel=1e-14)
    assert dial.summary == jax_dial.summary
    optimizer, found = dial.optimizer(), []
    for _ in range(50):
        loss = ((dial.network(dial.inputs) - dial.targets) ** 2).sum(1).mean() / 2
        found.append(float(loss))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    record = descend(jax_dial.task, jax_dial.network, Descent(jax_dial.optimizer(), steps=50, save=range(51)))
    np.testing.assert_allclose(record["loss"][:50], found, rtol=1e-10)


def test_a_scheduler_that_multiplies_the_rates_keeps_the_twin_and_one_that_sets_them_breaks_it():
    def halving(optimizer):
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5 ** (step // 20))

    def setting(optimizer):
        return torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-3, total_steps=200, cycle_momentum=False)

    pair = [regime_dial(TASK, module(), SETTINGS["SGD"], **each) for each in DIALS[1:3]]
    plain, scheduled, wrong = (
        [losses(each, scheduler=scheduler) for each in pair] for scheduler in (None, halving, setting)
    )
    assert check_twin(*scheduled).identical
    assert not check_twin(scheduled[0], plain[0]).identical
    assert not check_twin(*wrong).rounding_suffices


def test_clipping_at_another_threshold_is_reported():
    assert not regime_dial(TASK, module(), SGD, clip_norm=1.0).broken_by
    equal = regime_dial(TASK, module(), SGD, clip_norm=1.0, output_scale=2.0)
    assert equal.clip_norm == 4.0
    assert "1e-6" in equal.broken_by[0]
    assert "arrays differ" in regime_dial(TASK, module(), SGD, clip_norm=1.0, init_scale=2.0).broken_by[0]


def test_other_modules_have_the_scales_of_outputs_and_targets():
    given = nn.Sequential(nn.Linear(5, 6), nn.LayerNorm(6), nn.Tanh(), nn.Linear(6, 2)).double()
    base, other = (
        losses(regime_dial(TASK, given, SETTINGS["AdamW"], **scales), scales.get("target_scale", 1.0))
        for scales in ({"output_scale": 4.0}, {"target_scale": 0.25})
    )
    assert check_twin(base, other).identical


def test_frozen_parameters_are_scaled_but_not_trained():
    given = module()
    given[0].weight.requires_grad_(False)
    dial = regime_dial(TASK, given, SGD, init_scale=2.0)
    assert len(dial.parameter_groups()) == len(list(given.parameters())) - 1
    assert torch.equal(dial.network.network[0].weight, 2 * given[0].weight)


def test_classes_are_not_scaled():
    labels = torch.arange(16) % 2
    dial = regime_dial((TASK.inputs, labels), module(torch.float32), ADAM, init_scale=2.0, loss="cross_entropy")
    assert torch.equal(dial.targets, labels)
    assert dial.inputs.dtype == torch.float32


def test_records_of_twins_are_compared(tmp_path):
    runs = []
    for number, scales in enumerate(DIALS[1:3]):
        dial = regime_dial(TASK, module(), SGD, **scales)
        optimizer, path = dial.optimizer(), tmp_path / f"{number}.zarr"
        data = dial.inputs, dial.targets
        with Recorder(dial.network, path, reference=data, optimizer=optimizer, verbose=False) as recorder:
            for _ in range(12):
                loss = nn.functional.mse_loss(dial.network(dial.inputs), dial.targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                recorder.step(loss=loss)
        runs.append(recorder.read())
    assert check_twin(*runs).identical


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"task": 3}, "task"),
        ({"network": nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 2)), "init_scale": 2.0}, "network"),
        ({"network": nn.Sequential(*[nn.Linear(5, 5)] * 2), "init_scale": 2.0}, "network"),
        ({"network": nn.ReLU()}, "network"),
        ({"network": nn.LazyLinear(3)}, "network"),
        ({"layer_scales": [1.0, 2.0]}, "layer_scales"),
        ({"target_scale": 2.0, "loss": "cross_entropy"}, "target_scale"),
        ({"output_scale": -1.0}, "output_scale"),
        ({"output_scale": 1e200}, "output_scale"),
    ],
)
def test_bad_input_is_rejected_by_name(changes, argument):
    with pytest.raises(InputError) as caught:
        regime_dial(**{"task": TASK, "network": module(), "settings": SGD, **changes})
    assert caught.value.argument.startswith(argument)


@pytest.mark.parametrize(
    "settings",
    [
        OptimizerSettings("sgd", 0.1, decoupled_decay=0.1),
        OptimizerSettings("adam", 0.1, decoupled_decay=0.1, coupled_decay=0.1),
    ],
)
def test_decays_that_pytorch_lacks_have_settings_but_no_groups(settings):
    dial = regime_dial(TASK, module(), settings, init_scale=2.0)
    with pytest.raises(InputError) as caught:
        dial.parameter_groups()
    assert caught.value.argument == "decoupled_decay"
