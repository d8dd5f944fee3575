from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import pytest

from dynascope import which
from dynascope.prediction.own_inputs import inputs_for, wanted_by
from dynascope.tasks import Task

KEY = jax.random.key(0)
X = np.random.default_rng(0).normal(size=(6, 16))
ROWS, IMAGES = Task(X, X[:, :2]), Task(X.reshape(6, 4, 4), X[:, :2])


def test_a_module_of_equinox_is_given_rows_or_images_by_its_shapes():
    class Picture(eqx.Module):
        convolution: eqx.nn.Conv2d

        def __call__(self, x):
            return self.convolution(x).mean((1, 2))

    picture = Picture(eqx.nn.Conv2d(1, 2, 3, key=KEY))
    assert inputs_for(ROWS, eqx.nn.MLP(16, 2, 8, 2, key=KEY)) == "task.inputs[:100]"
    assert inputs_for(IMAGES, picture) == "task.inputs[:100].reshape(-1, 1, 4, 4)"
    assert inputs_for(ROWS, picture) == ""
    assert wanted_by(picture) == "shape (samples, 1, …), for that many channels"


def test_modules_of_pytorch_are_tried_and_left_as_they_were():
    torch = pytest.importorskip("torch")
    nn = torch.nn

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(16, 2))

        def forward(self, x):
            return x @ self.weight

    image = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 2))
    before = {name: value.clone() for name, value in image.state_dict().items()}
    rows = "next(network.parameters()).new_tensor(task.inputs[:100])"
    assert inputs_for(ROWS, Own()) == rows
    assert inputs_for(IMAGES, image) == f"{rows}.reshape(-1, 1, 4, 4)"
    assert image.training
    assert image[1].training
    assert all(torch.equal(value, before[name]) for name, value in image.state_dict().items())
    assert inputs_for(ROWS, nn.LSTM(16, 2)) == ""  # which makes more than one array


def test_a_module_that_someone_watches_or_that_has_no_shapes_yet_is_not_tried():
    nn = pytest.importorskip("torch.nn")
    seen = []
    watched = nn.Linear(16, 2)
    watched.register_forward_hook(lambda *given: seen.append(given))
    assert inputs_for(ROWS, watched) == ""
    assert inputs_for(ROWS, nn.LazyLinear(2)) == ""
    assert seen == []


def test_where_no_inputs_are_known_it_is_said_what_to_put_there():
    nn = pytest.importorskip("torch.nn")
    tokens = nn.Sequential(nn.Embedding(11, 4), nn.Linear(4, 2))
    (line,) = (each for each in which(ROWS, tokens).observing if each.startswith("x = "))
    told = "tokens below 11, integers of shape (samples, length)"
    assert line == f"x = INPUTS  # put a batch here that the network takes: {told}"


@pytest.mark.slow
def test_what_is_printed_runs_as_it_stands():
    nn = pytest.importorskip("torch.nn")
    image = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    bent = nn.Sequential(nn.Linear(16, 4), nn.Dropout(), nn.Tanh(), nn.Linear(4, 2))
    for network in (image, bent):
        known = {"task": IMAGES, "network": network}
        exec(which(IMAGES, network).script, known)
        assert known["before"].shape == (6, 2, 6, 2)
