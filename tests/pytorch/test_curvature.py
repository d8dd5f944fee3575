"""Curvatures of layers, against finite differences of their gradients."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if importlib.util.find_spec("curvlinops") is None:
    pytest.skip("curvlinops is not installed", allow_module_level=True)

from torch import nn  # noqa: E402  after the skip without PyTorch

from dynascope.errors import InputError  # noqa: E402
from dynascope.probes.diffusion import top_curvatures  # noqa: E402

GENERATOR = torch.Generator().manual_seed(0)
X, Y = (torch.rand(size, generator=GENERATOR, dtype=torch.float64) for size in ((10, 4), (10, 2)))
IMAGES = nn.Unflatten(1, (1, 2, 2))
LAYERS = {
    "layer normalisation": lambda: [nn.Linear(4, 6), nn.LayerNorm(6), nn.Tanh(), nn.Linear(6, 2)],
    "instance normalisation": lambda: [
        *(nn.Linear(4, 6), nn.Unflatten(1, (2, 3)), nn.InstanceNorm1d(2, affine=True)),
        *(nn.Flatten(), nn.Tanh(), nn.Linear(6, 2)),
    ],
    "group normalisation": lambda: [nn.Linear(4, 6), nn.GroupNorm(2, 6), nn.Tanh(), nn.Linear(6, 2)],
    "batch normalisation": lambda: [nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 2)],
    "convolution": lambda: [IMAGES, nn.Conv2d(1, 3, 2, padding=1), nn.Softplus(), nn.Flatten(), nn.Linear(27, 2)],
    "a frozen layer": lambda: [nn.Linear(4, 6).requires_grad_(False), nn.Tanh(), nn.Linear(6, 2), nn.Sigmoid()],
    "random slopes": lambda: [nn.Linear(4, 6), nn.RReLU(), nn.Linear(6, 2)],
}


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("name", LAYERS)
def test_directions_and_curvatures_are_those_of_the_gradients(name, reduction):
    torch.manual_seed(0)
    module, loss = nn.Sequential(*LAYERS[name]()).double().eval(), nn.MSELoss(reduction=reduction)
    parameters = [each for each in module.parameters() if each.requires_grad]
    weights = nn.utils.parameters_to_vector(parameters).detach()

    def gradient(moved):
        with torch.no_grad():
            nn.utils.vector_to_parameters(moved, parameters)
        slopes = torch.autograd.grad(loss(module(X), Y), parameters)
        return torch.cat([each.reshape(-1) for each in slopes]).numpy()

    step = 1e-5
    moves = step * torch.eye(len(weights), dtype=torch.float64)
    hessian = np.stack([(gradient(weights + each) - gradient(weights - each)) / (2 * step) for each in moves])
    with torch.no_grad():
        nn.utils.vector_to_parameters(weights, parameters)
    # Batches of unequal sizes.
    found = top_curvatures(loss, module, 3, batches=[(X[:7], Y[:7]), (X[7:], Y[7:])])
    size = np.abs(hessian).max()
    np.testing.assert_allclose(found.curvature, np.linalg.eigvalsh((hessian + hessian.T) / 2)[:-4:-1], atol=1e-7 * size)
    # The differences are exact to second order in the step.
    np.testing.assert_allclose(
        found.directions @ hessian, found.curvature[:, None] * found.directions, atol=1e-7 * size
    )
    assert (found.residual < 1e-10 * size).all()


@pytest.mark.parametrize("gauss_newton", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_function_with_a_reduction_has_the_curvature_of_the_loss_module(gauss_newton, reduction):
    torch.manual_seed(0)
    module = nn.Linear(3, 2).double()
    batches = [(torch.randn(4, 3).double(), torch.randn(4, 2).double()) for _ in range(2)]

    def function(outputs, targets):
        return getattr((outputs - targets).square(), reduction)()

    options = {"batches": batches, "gauss_newton": gauss_newton}
    expected = top_curvatures(nn.MSELoss(reduction=reduction), module, 2, **options)
    found = top_curvatures(function, module, 2, **options, reduction=reduction)
    np.testing.assert_allclose(found.curvature, expected.curvature, rtol=1e-9)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("batches", "problem"),
    [
        ((X, X), "batches, of type tuple, contains tensors instead of pairs"),
        ([], "batches, of type list, is empty"),
        (iter([(X, X)]), "batches, of type list_iterator, cannot be read repeatedly"),
        (None, "batches is missing"),
    ],
)
def test_batches_that_are_not_pairs_are_named(batches, problem):
    with pytest.raises(InputError, match=f"{problem}.* pairs \\(inputs, targets\\)") as caught:
        top_curvatures(torch.nn.MSELoss(), torch.nn.Linear(3, 3), 1, batches=batches)
    assert caught.value.argument == "batches"


def test_a_reduction_that_contradicts_the_loss_is_rejected():
    batches = [(torch.ones(2, 3), torch.ones(2, 1))]
    with pytest.raises(InputError, match="reduction is 'sum', but the loss has reduction 'mean'"):
        top_curvatures(nn.MSELoss(), nn.Linear(3, 1), 1, batches=batches, reduction="sum")
