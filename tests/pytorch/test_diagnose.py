from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from dynascope.errors import InputError
from dynascope.torch import diagnose

torch.manual_seed(0)
X = torch.randn(64, 4)
Y = torch.sign(X[:, :1] * X[:, 1:2])


def loader(*tensors: torch.Tensor, batch_size: int = 64):
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*tensors), batch_size=batch_size, shuffle=True)


def network(outputs: int = 1, factor: float = 1.0) -> nn.Module:
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(4, 50), nn.Tanh(), nn.Linear(50, outputs))
    with torch.no_grad():
        for each in module.parameters():
            each *= factor
    return module


def diagnosed(module: nn.Module, rate: float = 0.01, **options):
    optimizer = torch.optim.SGD(module.parameters(), lr=rate)
    return diagnose(module, loader(X, Y), nn.MSELoss(), optimizer, verbose=False, **options)


def test_the_stability_before_training_depends_on_the_learning_rate():
    assert diagnosed(network()).state("stability") == "stable"
    assert diagnosed(network(), rate=100.0).state("stability") == "unstable"


def test_the_regime_before_training_depends_on_the_initial_weights():
    assert diagnosed(network(factor=0.3), seconds=200.0).state("regime") == "rich"
    assert diagnosed(network(factor=5.0), seconds=200.0).state("regime") == "lazy"


def test_nothing_is_changed():
    module = network()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    before, random = [each.detach().clone() for each in module.parameters()], torch.get_rng_state()
    module.train()
    diagnose(module, loader(X, Y), nn.MSELoss(), optimizer, verbose=False)
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))
    assert torch.equal(random, torch.get_rng_state())
    assert module.training
    assert all(each.grad is None for each in module.parameters())


def test_adam_and_other_losses_have_no_regime_before_training():
    module = network()
    adam = torch.optim.Adam(module.parameters())
    found = diagnose(module, loader(X, Y), nn.MSELoss(), adam, verbose=False)
    assert found.state("regime") == "does not apply"
    sgd = torch.optim.SGD(module.parameters(), lr=0.01)
    found = diagnose(module, loader(X, Y), nn.L1Loss(), sgd, verbose=False)
    assert found.state("regime") == "does not apply"


def test_an_empty_loader_is_rejected():
    module = network()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    with pytest.raises(InputError, match="no batch"):
        diagnose(module, [], nn.MSELoss(), optimizer, verbose=False)


def test_the_reference_batch_is_drawn_from_several_batches():
    module = network()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    found = diagnose(module, loader(X, Y, batch_size=16), nn.MSELoss(), optimizer, examples=48, verbose=False)
    assert found.record.attrs["batch_size"] == 16
    assert np.isfinite(found.record["reference_noise"].to_numpy()).all()


def test_a_class_another_optimizer_and_a_pair_of_arrays_are_named():
    module = network()
    sgd, other = (torch.optim.SGD(each.parameters(), lr=0.01) for each in (module, network()))
    for arguments, name in (
        ((loader(X, Y), nn.MSELoss, sgd), "loss"),
        ((loader(X, Y), nn.MSELoss(), other), "optimizer"),
        (((X, Y), nn.MSELoss(), sgd), "loader"),
    ):
        with pytest.raises(InputError) as error:
            diagnose(module, *arguments, verbose=False)
        assert error.value.argument == name
