from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

from dynascope import compare, predict
from dynascope.comparison import user_curve
from dynascope.comparison.user_curves.judging import other_initial_weights
from dynascope.results import make_record

torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")

FALLING = 0.02 + 1.58 * np.cos(np.linspace(0.0, np.pi / 2, 24)) ** 2


def theory(start, **attributes):
    loss = start * np.linspace(1.0, 0.1, 6)
    facts = {"samples": 40, "output_dimension": 1, "loss_maximum_tolerance": 0.01} | attributes
    return make_record({"loss": (["time"], loss)}, {"time": np.arange(6.0)}, attributes=facts)


def curve(losses=FALLING, **options):
    return user_curve(losses, **{"learning_rate": 0.1, "loss": "mse"} | options)


@pytest.mark.parametrize("start", [1.2, 0.02, 1e-30, 0.0])
@pytest.mark.parametrize("steps", [None, 10 + np.arange(24)])
def test_weights_of_a_smaller_loss_than_the_first_are_reported_with_both_numbers(start, steps):
    told = other_initial_weights(curve(steps=steps), theory(start))
    assert "1.6" in told
    if start in (1.2, 0.02):  # others are written as powers of ten
        assert f"{start:g}" in told


@pytest.mark.parametrize(
    ("losses", "prediction"),
    [
        (FALLING, theory(1.6)),
        (FALLING, theory(1.58)),  # rounding and the error of the theory
        (FALLING, theory(1.3, loss_maximum_tolerance=0.2)),
        (FALLING, theory(9.0)),  # a mean over an epoch, or a curve that begins after some steps
        (FALLING * (1 + 0.3 * np.cos(np.arange(24) ** 2)), theory(1.6)),  # noise of minibatches
        (FALLING[::5], theory(1.0)),  # the same, with few points
        (FALLING, theory(0.1, weights="drawn")),
        (FALLING, theory(0.1).drop_vars("loss")),
    ],
)
def test_a_first_loss_that_may_be_that_of_the_weights_is_not_reported(losses, prediction):
    assert other_initial_weights(curve(losses), prediction) == ""


def test_a_task_that_is_no_sample_has_no_loss_to_compare():
    prediction = theory(0.1)
    del prediction.attrs["samples"]
    assert other_initial_weights(curve(), prediction) == ""


def test_the_ratio_of_another_convention_is_reported_as_that():
    told = other_initial_weights(curve(), theory(0.8))
    assert "is it loss='half_mse'" not in told  # the curve is larger, and half of it would be too small
    assert "step 0" in told
    told = other_initial_weights(curve(loss="half_mse"), theory(0.8))
    assert "Is the definition loss='mse'" in told
    assert "step 0" not in told


def trained(activation, steps, scale=1e-3):
    """Data, the model before and after training, and its losses."""
    torch.manual_seed(0)
    x = torch.randn(100, 3).double()
    y = 1.4 * x[:, :1]
    layers = torch.nn.Linear(3, 30, bias=False), activation(), torch.nn.Linear(30, 1, bias=False)
    model = torch.nn.Sequential(*layers).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight *= scale
    start, losses = copy.deepcopy(model), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return (x, y), start, model, losses


@pytest.mark.parametrize(
    ("activation", "steps"), [(torch.nn.ReLU, 200), (torch.nn.ReLU, 1500), (torch.nn.Identity, 400)]
)
def test_a_prediction_from_the_trained_model_is_undecided_and_says_why(activation, steps):
    data, start, model, losses = trained(activation, steps)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        late = compare(user_curve(losses, learning_rate=0.05, loss="mse"), predict(data, model, jumps=2))
    assert late.verdict.outcome == "undecided"
    assert "1.6" in late.verdict.sentence
    right = compare(user_curve(losses, learning_rate=0.05, loss="mse"), predict(data, start, jumps=2))
    assert "step 0" not in right.verdict.sentence
    assert right.verdict.outcome == "agree"


def test_a_curve_that_ends_on_the_first_plateau_has_no_other_initial_weights():
    data, start, _, losses = trained(torch.nn.ReLU, 20)
    tree = compare(user_curve(losses, learning_rate=0.05, loss="mse"), predict(data, start, jumps=1))
    assert "step 0" not in tree.verdict.sentence


@pytest.mark.parametrize("activation", [torch.nn.ReLU, torch.nn.Identity])
def test_weights_that_fit_all_samples_are_predicted_without_warnings_of_numpy(activation):
    torch.manual_seed(1)
    layers = torch.nn.Linear(3, 4, bias=False), activation(), torch.nn.Linear(4, 1, bias=False)
    model, x = torch.nn.Sequential(*layers).double(), torch.randn(50, 3).double()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        predicted = predict((x, model(x).detach()), model).record
    assert np.isfinite(predicted.attrs["curve_error"])
    assert float(predicted["loss"][0]) == pytest.approx(0.0, abs=1e-12)
