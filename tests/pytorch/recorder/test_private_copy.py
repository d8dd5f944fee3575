"""Private copies of modules share weights with the module, and a forward pass of a copy leaves the module unchanged."""

from __future__ import annotations

import functools
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
from dynascope.errors import InputError  # noqa: E402
from dynascope.torch.recorder.private_copy import originals_never_run, private_copy  # noqa: E402

nn = torch.nn
prune = pytest.importorskip("torch.nn.utils.prune")
INPUTS = torch.linspace(-1, 1, 12).reshape(4, 3)


class Parts(nn.Module):
    """A module whose layers are reached in many ways, with state in attributes of every kind."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        self.tied = self.body[0]
        self.hidden = [nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))]
        self.method, self.partial = self.one, functools.partial(self.one, factor=2.0)
        self.total, self.count, self.past = torch.zeros(3), 0, []
        self.lock, self.locks, self.square = threading.Lock(), {"first": [threading.Lock()]}, lambda x: x**2

    def one(self, x, factor=1.0):
        return factor * self.body(x)

    def forward(self, x):
        found = self.method(x) + self.partial(x) + self.hidden[0](x) + self.square(self.tied(x))
        self.total += found.detach().sum(0)
        self.count += 1
        self.past.append(found)
        return found


def state(module: Any) -> list[Any]:
    hidden = [*module.hidden[0].buffers(), *module.hidden[0].parameters()]
    tensors = [*module.parameters(), *module.buffers(), *hidden, module.total, *module.past]
    return [*(each.tolist() for each in tensors), module.count, module.training]


def test_a_forward_pass_of_the_copy_changes_nothing():
    module = Parts()
    module(INPUTS)  # now the attributes hold tensors with gradients
    with open(__file__) as module.file:
        before = state(module)
        copied: Any = private_copy(module)
        assert state(module) == before
        with originals_never_run(module):
            copied(INPUTS)
        assert state(module) == before
        assert copied.count == 2
        assert len(copied.past) == 2
        module.eval()
        copied = private_copy(module)
        torch.testing.assert_close(copied(INPUTS), module(INPUTS))


def test_weights_are_shared_and_ties_remain():
    module = Parts()
    copied: Any = private_copy(module)
    assert all(one is other for one, other in zip(copied.parameters(), module.parameters(), strict=True))
    assert copied.tied is copied.body[0] is not module.body[0]
    assert copied.hidden[0][0].weight is module.hidden[0][0].weight


def test_hooks_of_the_user_do_not_run():
    module, ran = nn.Sequential(nn.Linear(3, 2), nn.ReLU()), []
    for inner in module.modules():
        inner.register_forward_hook(lambda *_: ran.append("after"))
        inner.register_forward_pre_hook(lambda *_: ran.append("before"))
        inner.register_full_backward_hook(lambda *_: ran.append("backward"))
    copied = private_copy(module)
    copied(INPUTS).sum().backward()
    assert ran == []
    module(INPUTS).sum().backward()
    assert {*ran} == {"before", "after", "backward"}


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize(
    "normalised",
    [
        nn.utils.weight_norm,
        nn.utils.spectral_norm,
        nn.utils.parametrizations.weight_norm,
        nn.utils.parametrizations.spectral_norm,
        nn.utils.parametrizations.orthogonal,
        functools.partial(prune.l1_unstructured, name="weight", amount=0.5),
        functools.partial(torch.compile, backend="eager"),
    ],
)
def test_weights_that_the_module_computes_are_computed_by_the_copy(normalised):
    torch.manual_seed(0)
    module = nn.Sequential(normalised(nn.Linear(3, 3)), nn.ReLU()).eval()
    copied = private_copy(module)
    with torch.no_grad():
        next(module.parameters()).mul_(-1.5)
    torch.testing.assert_close(copied(INPUTS), module(INPUTS), rtol=0, atol=0)


class Chosen(nn.Linear):
    def __init__(self):
        super().__init__(3, 2)
        self.forward = self.doubled

    def doubled(self, x):
        return 2 * super().forward(x)


def test_only_replaced_forward_methods_are_restored():
    module = Chosen()
    copied = private_copy(module)
    torch.testing.assert_close(copied(INPUTS), module(INPUTS))
    with originals_never_run(module):
        copied(INPUTS)
    # As packages for mixed precision do.
    wrapped = nn.Linear(3, 2)
    original = wrapped.forward
    wrapped.forward = lambda x: original(x).bfloat16()
    assert private_copy(wrapped)(INPUTS).dtype == torch.float32


class Closed(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.call = lambda x: self.norm(x)

    def forward(self, x):
        return self.call(x)


def test_a_layer_behind_a_closure_is_named_and_does_not_run():
    module = Closed()
    copied = private_copy(module)
    with pytest.raises(InputError, match="reaches its layer 'norm'"), originals_never_run(module):
        copied(INPUTS)
    assert module.norm.num_batches_tracked == 0
    copied(INPUTS)  # the check ends with its context
    assert module.norm.num_batches_tracked == 1


class Uncopied(nn.Linear):
    def __deepcopy__(self, memo):
        raise RuntimeError("one of a kind")


def test_a_module_that_cannot_be_copied_is_named():
    with pytest.raises(InputError, match="one of a kind"):
        private_copy(nn.Sequential(Uncopied(2, 2)))
