"""Pre-activations and features of one forward pass, for activations and layers in the forms that people write."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
from dynascope.torch.recorder.forward_capture import ForwardCapture  # noqa: E402

nn, functional = torch.nn, torch.nn.functional
INPUTS = torch.linspace(-1, 1, 12).reshape(4, 3)


class Written(nn.Module):
    """A module whose forward method is a given function of its two layers."""

    def __init__(self, body):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last, self.act, self.body = nn.Linear(3, 3), nn.Linear(3, 2), nn.ReLU(), body

    def forward(self, x):
        return self.body(self, x)


class QuickGELUActivation(nn.Module):
    """An activation as other packages write it, out of functions."""

    def forward(self, x):
        return x * torch.sigmoid(functional.gelu(x))


def z(module, x):
    return module.first(x)


SAME = {
    "module": (lambda m, x: m.last(m.act(m.first(x))), ["act"]),
    "function": (lambda m, x: m.last(functional.relu(m.first(x))), ["relu"]),
    "method": (lambda m, x: m.last(m.first(x).relu()), ["relu"]),
    "in place": (lambda m, x: m.last(m.first(x).relu_()), ["relu"]),
    "option in place": (lambda m, x: m.last(functional.relu(m.first(x), inplace=True)), ["relu"]),
    "keyword": (lambda m, x: m.last(functional.gelu(input=m.first(x))), ["gelu"]),
    "out of functions": (lambda m, x: m.last(QuickGELUActivation()(m.first(x))), ["gelu"]),
}


@pytest.mark.parametrize("name", SAME)
def test_the_inputs_of_an_activation_are_captured_before_it(name):
    body, names = SAME[name]
    module = Written(body)
    with ForwardCapture(module, ["first"]) as captured:
        module(INPUTS)
    assert list(captured.preactivations) == names
    torch.testing.assert_close(captured.preactivations[names[0]][0], module.first(INPUTS))
    torch.testing.assert_close(captured.features["first"], module.first(INPUTS))
    assert captured.readout == "last"


def test_repeated_calls_are_numbered_and_activations_of_other_packages_are_one():
    module = Written(lambda m, x: m.last(functional.relu(functional.relu(m.first(x)) - 1) + m.act(x) + m.act(x)))
    module.act = QuickGELUActivation()
    with ForwardCapture(module, []) as captured:
        module(INPUTS)
    assert list(captured.preactivations) == ["relu", "relu#2", "act", "act#2"]
    torch.testing.assert_close(captured.preactivations["relu#2"][0], module.first(INPUTS).relu() - 1)


def test_channels_are_the_units_of_images():
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True), nn.Flatten())
    with ForwardCapture(module, ["0", "2"]) as captured:
        module(torch.ones(4, 1, 5, 5))
    values, channels_second = captured.preactivations["1"]
    assert values.shape == (4, 2, 3, 3)
    assert channels_second
    assert captured.readout == ""
    assert (captured.features["0"] == values).all()  # not the values after the activation in place


def test_no_hooks_remain_after_an_error():
    module = Written(lambda m, x: m.last(x[:, :2]))
    with pytest.raises(RuntimeError), ForwardCapture(module, []):
        module(INPUTS)
    assert not any(inner._forward_hooks or inner._forward_pre_hooks for inner in module.modules())
