from __future__ import annotations

import equinox as eqx
import numpy as np
import pytest
from drawn_modules import drawn

from dynascope import which
from dynascope.prediction.user_inputs import drawn_for, inputs_for, wanted_by
from dynascope.tasks import Task

X = np.random.default_rng(0).normal(size=(6, 16))
ROWS, IMAGES = Task(X, X[:, :2]), Task(X.reshape(6, 4, 4), X[:, :2])


def test_a_module_of_equinox_is_given_rows_or_images_by_its_shapes():
    class Picture(eqx.Module):
        convolution: eqx.nn.Conv2d

        def __call__(self, x):
            return self.convolution(x).mean((1, 2))

    picture = Picture(drawn(eqx.nn.Conv2d, 1, 2, 3))
    assert inputs_for(ROWS, drawn(eqx.nn.MLP, 16, 2, 8, 2)) == "task.inputs[:100]"
    assert inputs_for(IMAGES, picture) == "task.inputs[:100].reshape(-1, 1, 4, 4)"
    assert inputs_for(ROWS, picture) == ""
    assert "(samples, 1, …)" in wanted_by(picture)


def test_modules_of_pytorch_are_tried_and_left_as_they_were():
    torch = pytest.importorskip("torch")
    nn = torch.nn

    class UserModule(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(16, 2))

        def forward(self, x):
            return x @ self.weight

    image = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 2))
    before = {name: value.clone() for name, value in image.state_dict().items()}
    rows = "next(network.parameters()).new_tensor(task.inputs[:100])"
    assert inputs_for(ROWS, UserModule()) == rows
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
    (line,) = (each for each in which(ROWS, nn.LSTM(11, 2)).observing if each.startswith("x = "))
    assert "(samples, 11)" in line


def test_where_the_task_has_none_they_are_drawn_in_a_shape_that_the_network_takes():
    torch = pytest.importorskip("torch")
    nn = torch.nn
    picture = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(2 * 26 * 26, 2))
    place = "next(network.parameters())"
    networks = nn.Sequential(nn.Embedding(11, 4), nn.Linear(4, 2)), picture, nn.Linear(3, 2)
    random = torch.get_rng_state()
    found = {drawn_for(network).partition("  #")[0] for network in networks}
    assert torch.equal(torch.get_rng_state(), random)
    assert found == {
        f"torch.randint(11, (20, 8), device={place}.device)",
        f"{place}.new_empty((20, 1, 28, 28)).normal_()",
        f"{place}.new_empty((20, 3)).normal_()",
    }
    assert drawn_for(nn.Sequential(nn.ReLU())) == drawn_for(nn.LSTM(11, 2)) == ""


@pytest.mark.slow
def test_samples_are_not_taken_for_places_of_one_sequence():
    nn = pytest.importorskip("torch.nn")
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 8, batch_first=True), 1)
    assert inputs_for(ROWS, encoder) == ""
    assert "new_empty((20, 8, 16))" in drawn_for(encoder)


@pytest.mark.slow
def test_what_is_printed_runs_as_it_stands():
    nn = pytest.importorskip("torch.nn")
    image = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    bent = nn.Sequential(nn.Linear(16, 4), nn.Dropout(), nn.Tanh(), nn.Linear(4, 2))
    signal = nn.Sequential(nn.Conv1d(3, 2, 3), nn.Tanh(), nn.Flatten(), nn.Linear(12, 2))
    tokens = nn.Sequential(nn.EmbeddingBag(7, 4), nn.Linear(4, 2))
    perceptron = drawn(eqx.nn.MLP, 5, 2, 4, 2)
    for network, samples in ((image, 6), (bent, 6), (signal, 20), (tokens, 20), (perceptron, 20)):
        known = {"task": IMAGES, "network": network}
        exec(which(IMAGES, network).script, known)
        assert known["before"].shape == (samples, 2, samples, 2)
