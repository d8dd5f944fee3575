"""The settings of training in the attributes of a record."""

import functools
import json

import pytest

from dynascope.diagnosis.training_settings import settings_of, training_attributes
from dynascope.errors import InputError
from dynascope.theory.regimes import OptimizerSettings

torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")


def found(optimizer):
    attributes = training_attributes(type(optimizer).__name__, optimizer.param_groups, batch_size=None, criterion=None)
    return attributes["optimizer"], json.loads(attributes["parameter_groups"])


def test_settings_of_each_group():
    one, two = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    groups = [{"params": [one], "weight_decay": 0.1}, {"params": [two], "momentum": 0.5}]
    name, (first, second) = found(torch.optim.SGD(groups, lr=0.1, momentum=0.9, nesterov=True))
    assert name == "SGD"
    assert (first["weight_decay"], first["momentum"], first["nesterov"]) == (0.1, 0.9, True)
    assert (second["weight_decay"], second["momentum"]) == (0, 0.5)


@pytest.mark.parametrize("beta", [0.9, torch.tensor(0.9)])
def test_settings_of_adam_may_be_tensors(beta):
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.ones(2))], lr=0.1, weight_decay=0.1)
    optimizer.param_groups[0]["betas"] = (beta, 0.999)
    name, (group,) = found(optimizer)
    assert name == "AdamW"
    assert group["betas"] == [pytest.approx(0.9), 0.999]
    assert (group["eps"], group["weight_decay"], group["amsgrad"]) == (1e-8, 0.1, False)


def test_unknown_settings_are_omitted():
    assert training_attributes("", [], batch_size=None, criterion=None) == {}


@pytest.mark.parametrize(
    ("criterion", "name"),
    [
        (torch.nn.CrossEntropyLoss(), "CrossEntropyLoss"),
        (torch.nn.functional.mse_loss, "mse_loss"),
        (functools.partial(torch.nn.functional.cross_entropy, label_smoothing=0.1), "cross_entropy"),
    ],
)
def test_the_name_of_the_loss(criterion, name):
    assert training_attributes("", [], batch_size=8, criterion=criterion) == {"batch_size": 8, "criterion": name}


@pytest.mark.parametrize(
    ("settings", "name", "kinds"),
    [
        (OptimizerSettings("sgd", 0.1, momentum=0.9, coupled_decay=0.01), "SGD", (0.01, False)),
        (OptimizerSettings("sgd", 0.1, decoupled_decay=0.01), "SGDW", (0.01, True)),
        (OptimizerSettings("adam", 0.1, coupled_decay=0.01), "Adam", (0.01, False)),
        (OptimizerSettings("adam", 0.1, decoupled_decay=0.01), "AdamW", (0.01, True)),
    ],
)
def test_settings_of_jax_have_the_names_of_pytorch(settings, name, kinds):
    optimizer, group = settings_of(settings)
    assert optimizer == name
    assert (group["weight_decay"], group["decoupled_weight_decay"]) == kinds
    (read,) = json.loads(training_attributes(optimizer, [group], batch_size=None, criterion=None)["parameter_groups"])
    if settings.optimizer == "sgd":
        assert read["momentum"] == settings.momentum
    else:
        assert read["betas"] == [0.9, 0.999]


def test_two_kinds_of_decay_are_rejected():
    with pytest.raises(InputError) as error:
        settings_of(OptimizerSettings("sgd", 0.1, coupled_decay=0.1, decoupled_decay=0.1))
    assert error.value.argument == "settings"
