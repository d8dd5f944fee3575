"""Modules, losses and data that change from call to call are rejected by every function that evaluates them twice."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from dynascope.errors import InputError

torch = pytest.importorskip("torch")
if importlib.util.find_spec("curvlinops") is None:
    pytest.skip("curvlinops is not installed", allow_module_level=True)

from torch import nn  # noqa: E402  after the skip without PyTorch
from torch.utils.data import DataLoader, Dataset, TensorDataset  # noqa: E402

from dynascope.probes.diffusion import top_curvatures  # noqa: E402
from dynascope.probes.kernel import estimate_cost, neural_tangent_kernel  # noqa: E402
from dynascope.symmetry import find_symmetries  # noqa: E402
from dynascope.torch import program, temperature  # noqa: E402

GENERATOR = torch.Generator().manual_seed(0)
X, Y = (torch.rand(size, generator=GENERATOR, dtype=torch.float64) for size in ((10, 3), (10, 2)))
BATCHES = [(X[:5], Y[:5]), (X[5:], Y[5:])]
LOSS = nn.MSELoss()


class Then(nn.Module):
    """A linear layer and a function of its outputs and of the number of the call."""

    def __init__(self, function):
        super().__init__()
        self.layer, self.function, self.calls = nn.Linear(3, 2), function, 0

    def forward(self, x):
        self.calls += 1
        return self.function(self.layer(x), self.calls)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.LSTM(3, 2, num_layers=2, dropout=0.5)

    def forward(self, x):
        return self.cells(x[None])[0][0]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.last = nn.MultiheadAttention(3, 1, dropout=0.5, batch_first=True), nn.Linear(3, 2)

    def forward(self, x):
        return self.last(self.heads(x[:, None], x[:, None], x[:, None])[0][:, 0])


def dropped_layer(z, _):
    """Stochastic depth: it mostly keeps the layer, so that two calls are likely to agree."""
    return z if torch.rand(()) < 0.99 else 0 * z


def power_iteration():
    """Its singular values are so close that the iteration, which each call continues, converges slowly."""
    layer = nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.9, 0.0]]))
    return nn.utils.parametrizations.spectral_norm(layer)


def linear():
    torch.manual_seed(0)
    return nn.Linear(3, 2).double()


# In training mode.
TRAINING = {
    "dropout": (lambda: nn.Sequential(nn.Linear(3, 2), nn.Dropout()), "training mode and contains Dropout '1'"),
    "alpha dropout": (lambda: nn.Sequential(nn.Linear(3, 2), nn.AlphaDropout()), "AlphaDropout '1'"),
    "nested": (lambda: nn.ModuleDict({"a": nn.Sequential(nn.Dropout(), nn.Linear(3, 2))})["a"], "Dropout '0'"),
    "batch normalisation": (lambda: nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)), "BatchNorm1d '1'.*eval"),
    "random slopes": (lambda: nn.Sequential(nn.Linear(3, 2), nn.RReLU()), "RReLU '1'"),
    "recurrent dropout": (Recurrent, "LSTM 'cells'"),
    "attention dropout": (Attention, "MultiheadAttention 'heads'"),
    "power iteration": (power_iteration, "different results in repeated calls.*eval"),
}
# In evaluation mode, where no layer shows it.
ANYWAY = {
    "dropout": (lambda: Then(lambda z, _: nn.functional.dropout(z, training=True)), "draws"),
    "a layer that is dropped": (lambda: Then(dropped_layer), "draws random numbers"),
    "noise of NumPy": (lambda: Then(lambda z, _: z + np.random.default_rng().normal()), "different results"),
    "a generator": (lambda: Then(lambda z, _: z + torch.rand(2, generator=GENERATOR)), "different results"),
    "a counter": (lambda: Then(lambda z, calls: z * (1 + 1e-3 * calls)), "different results"),
}


def measured_temperature(module):
    return temperature(module, LOSS, BATCHES, torch.optim.SGD(module.parameters(), lr=0.1), 1)


LOSSES = {
    "top_curvatures": lambda module: top_curvatures(LOSS, module, 1, batches=BATCHES),
    "gauss_newton": lambda module: top_curvatures(LOSS, module, 1, batches=BATCHES, gauss_newton=True),
    "temperature": measured_temperature,
}
KERNELS = {
    "neural_tangent_kernel": lambda module: neural_tangent_kernel(module, None, X),
    "estimate_cost": lambda module: estimate_cost(module, None, X),
}
PROGRAMS = {
    "structure": lambda module: find_symmetries(module, None, X),
    "program": lambda module: program(module, None, X),
}


@pytest.mark.parametrize("function", LOSSES | KERNELS)
@pytest.mark.parametrize("name", TRAINING)
def test_layers_that_change_in_training_are_named_with_the_remedy(name, function):
    made, message = TRAINING[name]
    with pytest.raises(InputError, match=message) as rejected:
        (LOSSES | KERNELS)[function](made().double())
    assert rejected.value.argument in ("module", "weights", "apply")
    assert "eval()" in rejected.value.remedy


@pytest.mark.parametrize("function", LOSSES | KERNELS | PROGRAMS)
@pytest.mark.parametrize("name", ANYWAY)
def test_a_forward_pass_that_changes_in_evaluation_is_rejected(name, function):
    made, message = ANYWAY[name]
    module = made().double().eval()
    with pytest.raises(InputError, match=message):
        (LOSSES | KERNELS | PROGRAMS)[function](module)


@pytest.mark.parametrize("function", ["top_curvatures", "temperature", *KERNELS])
def test_the_module_and_the_random_numbers_are_unchanged(function):
    class Counting(nn.Module):
        """It writes into one buffer in place and replaces the other."""

        last: torch.Tensor

        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2)
            self.register_buffer("calls", torch.zeros(()))
            self.register_buffer("last", torch.zeros(2))

        def forward(self, x):
            outputs = self.layer(x)
            if not torch.is_grad_enabled():
                self.calls += 1
                self.last = self.last + 1
            return outputs

    module = Counting().double()
    buffer, state = module.last, torch.get_rng_state()
    (LOSSES | KERNELS)[function](module)
    assert module.training
    assert module.last is buffer
    assert (float(module.calls), module.last.tolist()) == (0, [0, 0])
    assert all(each.grad is None for each in module.parameters())
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", TRAINING)
def test_in_evaluation_the_same_modules_are_measured(name):
    torch.manual_seed(0)
    module = TRAINING[name][0]().double().eval()
    [curvature] = top_curvatures(LOSS, module, 1, batches=BATCHES).curvature
    parameters = dict(module.named_parameters())

    def loss(*values):
        outputs = torch.func.functional_call(module, dict(zip(parameters, values, strict=True)), X)
        return LOSS(outputs, Y)

    blocks = torch.autograd.functional.hessian(loss, tuple(parameters.values()))
    sizes = [each.numel() for each in parameters.values()]
    rows = [torch.cat([each.reshape(size, -1) for each in row], dim=1) for size, row in zip(sizes, blocks, strict=True)]
    assert curvature == pytest.approx(float(torch.linalg.eigvalsh(torch.cat(rows))[-1]), rel=1e-6)


class Noisy(Dataset):
    """Images with random augmentation."""

    def __init__(self, noise):
        self.noise = noise

    def __len__(self):
        return len(X)

    def __getitem__(self, row):
        return X[row] + self.noise * torch.randn(3, dtype=torch.float64), Y[row]


class Emptied:
    """Batches that only the first two passes have."""

    def __init__(self):
        self.passes = 0

    def __iter__(self):
        self.passes += 1
        return iter(BATCHES if self.passes < 4 else [])


ALL = TensorDataset(X, Y)


@pytest.mark.parametrize(
    "batches",
    [
        DataLoader(ALL, 3, shuffle=True, drop_last=True),
        DataLoader(Noisy(0.1), 5),
        DataLoader(Noisy(1e-6), 5),
        Emptied(),
    ],
    ids=["shuffled without the last", "augmented", "hardly augmented", "emptied"],
)
def test_batches_that_change_between_passes_are_rejected(batches):
    with pytest.raises(InputError, match=r"in one pass and .* in the next.*without shuffling or random aug") as caught:
        top_curvatures(LOSS, linear(), 1, batches=batches)
    assert caught.value.argument == "batches"


@pytest.mark.parametrize("loss", [LOSS, nn.MSELoss(reduction="sum")], ids=["mean", "sum"])
def test_the_order_of_the_same_batches_does_not_matter(loss):
    module, state = linear(), torch.get_rng_state()
    expected = top_curvatures(loss, module, 2, batches=[(X, Y)])
    for batches in (DataLoader(ALL, 4), DataLoader(ALL, 4, shuffle=True), BATCHES):
        np.testing.assert_allclose(
            top_curvatures(loss, module, 2, batches=batches).curvature, expected.curvature, rtol=1e-10
        )
    assert torch.equal(torch.get_rng_state(), state)


def test_single_precision_is_no_change():
    module = linear().float()
    batches = DataLoader(TensorDataset(X.float(), Y.float()), 4, shuffle=True)
    expected = top_curvatures(LOSS, linear(), 2, batches=[(X, Y)]).curvature
    np.testing.assert_allclose(top_curvatures(LOSS, module, 2, batches=batches).curvature, expected, rtol=1e-5)


def test_a_random_loss_is_rejected():
    class Random(nn.MSELoss):
        def forward(self, outputs, targets):
            return super().forward(outputs, targets) * np.random.default_rng().uniform(1, 2)

    with pytest.raises(InputError, match="different results"):
        top_curvatures(Random(), linear(), 1, batches=BATCHES)


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([(X * torch.nan, Y)], "the loss is nan"),
        ([(X[:, :2], Y)], "raised RuntimeError on a batch"),
        ([(X, None)], "raised AttributeError on a batch"),
        ([({"x": X}, Y)], "pair of tensors"),
    ],
)
def test_batches_that_cannot_be_evaluated_are_rejected(batches, message):
    with pytest.raises(InputError, match=message) as caught:
        top_curvatures(LOSS, linear(), 1, batches=batches)
    assert caught.value.argument == "batches"


def test_the_remedy_for_attention_works():
    torch.manual_seed(0)
    layers = nn.TransformerEncoderLayer(3, 1, 4, batch_first=True), nn.Flatten(), nn.Linear(3, 2)
    module = nn.Sequential(nn.Unflatten(1, (1, 3)), *layers).double().eval()
    with pytest.raises(InputError, match=r"differentiate the loss twice.*attention.sdpa_kernel"):
        top_curvatures(LOSS, module, 1, batches=BATCHES)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        found = top_curvatures(LOSS, module, 1, batches=BATCHES)
    assert found.residual < 1e-6 * found.curvature


def test_what_cannot_be_differentiated_twice_is_rejected():
    class Once(torch.autograd.Function):
        """It has no second derivative."""

        @staticmethod
        def forward(context, x):
            return x.clone()

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(context, slope):
            return slope.clone()

    with pytest.raises(InputError, match="differentiate the loss twice"):
        top_curvatures(LOSS, Then(lambda z, _: Once.apply(z)).double(), 1, batches=BATCHES)
