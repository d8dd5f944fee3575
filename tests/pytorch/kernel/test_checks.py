from __future__ import annotations

import pytest

from dynascope.errors import InputError

networks = pytest.importorskip("pytorch_networks", reason="PyTorch is an optional extra")
torch, nn = networks.torch, networks.nn
check = pytest.importorskip("dynascope.torch.kernel.checks").check

WEIGHT, X = networks.draw(3, 2), networks.draw(4, 3)
LINEAR = nn.Linear(3, 2, dtype=torch.float64)
NORMALISED = nn.BatchNorm1d(2, dtype=torch.float64)
UNTRACKED = nn.BatchNorm1d(2, track_running_stats=False, dtype=torch.float64)


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3, track_running_stats=False))

    def forward(self, x):
        return self.inner(x).flatten(1)


IMAGES = nn.Sequential(Branch()).double()
COMPLEX = nn.Linear(3, 2, dtype=torch.complex128)


class Sideways(nn.Module):
    """It draws in a function, where no layer tells."""

    def __init__(self):
        super().__init__()
        self.layer = LINEAR

    def forward(self, x):
        return nn.functional.dropout(self.layer(x), training=self.training)


class Silent(torch.autograd.Function):
    """It has no backward pass."""

    @staticmethod
    def forward(context, x):
        return x.clone()


def product(w, x):
    return x @ w


# What is given, and what the message names.
REFUSED = {
    "dropout": ((nn.Sequential(LINEAR, nn.Dropout()), None, X), r"Dropout '1': call module.eval\(\)"),
    "batch normalisation": ((nn.Sequential(LINEAR, NORMALISED), None, X), "training mode and contains BatchNorm1d '1'"),
    "the same in a function": ((lambda m, x: m(x), nn.Sequential(LINEAR, nn.Dropout()), X), "training mode"),
    "dropout in a function": ((Sideways(), None, X), r"draws random numbers.*module.eval\(\), or training=False"),
    "statistics of the batch": (
        (nn.Sequential(LINEAR, UNTRACKED).eval(), None, X),
        "batch statistics of BatchNorm1d '1', because track_running_stats is False.*use track_running.*or assign",
    ),
    "the same in training mode": (
        (nn.Sequential(LINEAR, UNTRACKED), None, X),
        "of BatchNorm1d '1', because track_running",
    ),
    "the same of images": ((IMAGES.eval(), None, networks.draw(3, 2, 4, 4)), "BatchNorm2d '0.inner.1', because"),
    "the same in a function of a module": ((lambda m, x: m(x), nn.Sequential(LINEAR, UNTRACKED), X), "track_running"),
    "the same hidden from the module": ((lambda w, x: UNTRACKED(x @ w), WEIGHT, X), "alone.*track_running_stats=True"),
    "statistics by a function": (
        (lambda w, x: nn.functional.batch_norm(x @ w, None, None, training=True), WEIGHT, X),
        "alone.*fixed statistics in custom batch normalisation",
    ),
    "a centred batch": ((lambda w, x: (x - x.mean(0)) @ w, WEIGHT, X), "depend on the other examples in the batch"),
    "several outputs": ((nn.LSTM(3, 2).double(), None, X), r"tuple.*network\(x\)\[0\]"),
    "classes": ((lambda w, x: (x @ w).argmax(1), WEIGHT, X), "torch.int64.*logits"),
    "no outputs": ((lambda w, x: (x @ w)[:, :0], WEIGHT, X), "shape"),
    "one number": ((lambda w, x: (x @ w).sum(), WEIGHT, X), r"shape \(\) for 2 examples"),
    "outputs that are not finite": ((lambda w, x: (x @ w) / 0, WEIGHT, X), "outputs that are not finite: give"),
    "no derivative": ((lambda w, x: Silent.apply(x @ w), WEIGHT, X), "cannot differentiate apply.*NotImplemented"),
    "an error of its own": ((product, WEIGHT, X[:, :2]), r"apply raised RuntimeError on 2 examples \(mat1"),
    "another precision": ((product, WEIGHT, X.float()), "same dtype"),
    "no function": ((3, WEIGHT, X), "apply is of type int"),
    "arrays": ((LINEAR, None, X.numpy()), "ndarray.*give PyTorch tensors"),
    "no inputs": ((LINEAR, None, X[:0]), "at least one example"),
    "inputs of two lengths": ((product, WEIGHT, {"a": X, "b": X[:2]}), "at least one example"),
    "inputs that are not finite": ((LINEAR, None, X * float("inf")), "not finite"),
    "another device": ((LINEAR, None, X.to("meta")), r"meta.*\.to\('cpu'\)"),
    "parameters on two devices": ((product, [WEIGHT, WEIGHT.to("meta")], X), "one device"),
    "complex parameters": ((COMPLEX, None, X), "complex.*real and imaginary"),
    "complex tensors": ((product, WEIGHT + 0j, X), "complex.*real and imaginary"),
    "parameters that are not finite": ((product, WEIGHT / 0, X), "not finite"),
    "no parameters": ((nn.Tanh(), None, X), "no parameter of the module requires a gradient"),
    "frozen parameters": ((nn.Linear(3, 2).requires_grad_(False), None, X), "requires a gradient"),
    "whole numbers": ((product, torch.ones(3, 2).long(), X), "no floating-point tensors"),
    "names of no parameter": ((LINEAR, {"w": WEIGHT}, X), "module.named_parameters"),
    "no dictionary": ((LINEAR, [WEIGHT], X), "module.named_parameters"),
    "another shape": ((LINEAR, {"weight": WEIGHT}, X), "weight with another shape"),
    "tied parameters apart": (
        (networks.made("a tied table")[0], {"table.weight": torch.ones(7, 4), "last.weight": torch.zeros(7, 4)}, X),
        "the same parameter of the module, but different tensors",
    ),
    "modules in a list": ((product, [LINEAR, LINEAR], X), "ModuleList"),
    "a layer without a shape": ((nn.LazyLinear(2), None, X), "call the module once"),
}


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused_with_a_remedy(case):
    given, message = REFUSED[case]
    with pytest.raises(InputError, match=f"(?s){message}"):
        check(*given, None, None)


def test_training_mode_alone_is_no_reason_and_still_dropout_neither():
    module = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.0), nn.LayerNorm(2)).double().train()
    assert check(module, None, X, None, None).mapped


def test_the_remedies_for_statistics_of_the_batch_work():
    layer = nn.BatchNorm1d(2, track_running_stats=False, dtype=torch.float64).eval()
    layer.running_mean, layer.running_var = torch.zeros(2).double(), torch.ones(2).double()
    tracked = nn.BatchNorm1d(2, dtype=torch.float64).eval()
    for each in (layer, tracked):
        assert check(nn.Sequential(LINEAR, each), None, X, None, None).mapped


@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_normalisation_of_each_example_is_no_reason(tracked, training):
    layers = [nn.InstanceNorm1d(2, track_running_stats=tracked), nn.GroupNorm(2, 2), nn.LayerNorm(4)]
    module = nn.Sequential(nn.Linear(3, 8), nn.Unflatten(1, (2, 4)), *layers, nn.Flatten()).double()
    check(module.train(training), None, X, None, None)


def test_the_second_set_is_checked_like_the_first():
    with pytest.raises(InputError, match="other"):
        check(LINEAR, None, X, X[:0], None)


def test_buffers_are_read_and_never_written():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = LINEAR
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls += 1
            return self.layer(x)

    module = Counting()
    check(module, None, X, None, None)
    assert float(module.calls) == 0
