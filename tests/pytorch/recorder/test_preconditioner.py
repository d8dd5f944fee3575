from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dynascope.torch import Recorder  # noqa: E402
from dynascope.torch.recorder.preconditioner import is_adam  # noqa: E402

X = torch.randn(20, 3, generator=torch.Generator().manual_seed(0)).double()
Y = X @ torch.tensor([[1.0], [-2.0], [0.5]]).double()
LOSS = torch.nn.MSELoss()


def recorded(tmp_path, model, optimizer, steps, data=(X, Y), criterion=LOSS, **options):
    settings = {"optimizer": optimizer, "criterion": criterion, "preset": ["curvature"], "verbose": False} | options
    with Recorder(model, tmp_path / "run.zarr", reference=data, **settings) as recorder:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = criterion(model(data[0]), data[1])
            loss.backward()
            optimizer.step()
            recorder.step(loss=loss)
    return recorder.read()


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize("amsgrad", [False, True])
def test_it_is_the_largest_eigenvalue_for_the_recorded_state(tmp_path, kind, amsgrad):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1).double()
    groups = [{"params": [model.weight], "lr": 0.02}, {"params": [model.bias], "lr": 0.005, "eps": 0.1}]
    optimizer = kind(groups, betas=(0.8, 0.95), amsgrad=amsgrad)
    # The loss is quadratic, so its Hessian does not depend on the weights.
    inputs = torch.cat([X, torch.ones(20, 1).double()], 1)
    hessian = 2 * inputs.T @ inputs / 20
    run = recorded(tmp_path, model, optimizer, 10)

    name = "max_exp_avg_sq" if amsgrad else "exp_avg_sq"
    roots = [(optimizer.state[each][name].flatten() / (1 - 0.95**10)).sqrt() for each in (model.weight, model.bias)]
    denominators = torch.cat([roots[0] + 1e-8, (roots[1] + 0.1) * 4]) * (1 - 0.8**10)
    matrix = hessian / (denominators[:, None] * denominators).sqrt()
    assert float(run["preconditioned_sharpness"][-1]) == pytest.approx(float(torch.linalg.eigvalsh(matrix)[-1]))
    assert np.isnan(run["preconditioned_sharpness"][0])  # before the first step there are no second moments


def test_parameters_that_the_optimizer_does_not_move_do_not_count(tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1).double()
    optimizer = torch.optim.Adam([model.bias], lr=0.01)
    run = recorded(tmp_path, model, optimizer, 3)
    state = optimizer.state[model.bias]
    root = float(state["exp_avg_sq"]) / (1 - 0.999**3)
    expected = 2 / (root**0.5 + 1e-8) / (1 - 0.9**3)
    assert float(run["preconditioned_sharpness"][-1]) == pytest.approx(expected)


def test_it_is_recorded_for_adam_only(tmp_path):
    model = torch.nn.Linear(3, 1).double()
    run = recorded(tmp_path, model, torch.optim.SGD(model.parameters(), lr=0.1), 1)
    assert "preconditioned_sharpness" not in run

    class Variant(torch.optim.Adam):
        pass

    assert not is_adam(Variant(model.parameters()))


def test_full_batch_adam_settles_at_the_edge_of_stability(tmp_path):
    torch.manual_seed(0)
    rate, inputs = 0.01, torch.randn(64, 5)
    model = torch.nn.Sequential(torch.nn.Linear(5, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    targets = torch.sin(2 * inputs[:, :1]) * inputs[:, 1:2]
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, eps=1e-7)
    options = {"data": (inputs, targets), "schedule": [1, 100, 200, 1000], "max_overhead": None}
    run = recorded(tmp_path, model, optimizer, 1000, **options)
    sharpness = run["preconditioned_sharpness"].dropna("step") * rate
    assert sharpness[2] < 38 / 2
    assert float(sharpness[-1]) == pytest.approx(38, rel=0.15)
