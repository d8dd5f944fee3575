from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.networks import weights_from_file
from dynascope.tasks import Expectation, Task

DRAW = np.random.default_rng(0)
FIRST, SECOND = DRAW.normal(size=(3, 7)), DRAW.normal(size=(7, 2))
TASK = Task(DRAW.normal(size=(9, 3)), DRAW.normal(size=(9, 2)))


@pytest.mark.parametrize("arrays", [{"W1": FIRST, "W2": SECOND}, {"W1": FIRST.T, "W2": SECOND.T, "step": np.ones(3)}])
def test_weights_are_taken_as_they_act_or_as_pytorch_has_them(tmp_path, arrays):
    np.savez(tmp_path / "start.npz", **arrays)
    network = weights_from_file(tmp_path / "start.npz", "quadratic", TASK)
    np.testing.assert_array_equal(network(TASK.inputs), (TASK.inputs @ FIRST) ** 2 @ SECOND)


@pytest.mark.parametrize(
    ("kind", "biases"), [("relu", ("b1", "b2")), ("relu", ("b2",)), ("linear", ("b1",)), ("quadratic", ("b2",))]
)
def test_biases_are_read(tmp_path, kind, biases):
    zero = {"b1": np.zeros(7), "b2": np.zeros(2)}
    drawn = {"b1": DRAW.normal(size=7), "b2": DRAW.normal(size=2)}
    np.savez(tmp_path / "start.npz", W1=FIRST, W2=SECOND, **{name: drawn[name] for name in biases})
    values = zero | {name: drawn[name] for name in biases}
    function = {"relu": lambda z: np.maximum(z, 0), "linear": lambda z: z, "quadratic": np.square}[kind]
    network = weights_from_file(tmp_path / "start.npz", kind, TASK)
    expected = function(TASK.inputs @ FIRST + values["b1"]) @ SECOND + values["b2"]
    np.testing.assert_allclose(network(TASK.inputs), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"W1": FIRST, "W2": SECOND, "b1": np.ones(3)}, "b1"),
        ({"W1": FIRST}, "start.npz has no W2; it has W1: save the weights with np.savez"),
        ({"weight": FIRST}, "has no W1 and no W2; it has weight"),
        ({"W1": FIRST, "W2": SECOND[1:]}, r"W1 with shape \(3, width\) and W2 with shape \(width, 2\)"),
        ({"W1": FIRST[1:], "W2": SECOND}, "the task has input dimension 3 and output dimension 2"),
        ({"W1": FIRST, "W2": np.full((7, 2), np.nan)}, "not finite"),
        ({"W1": np.array([None]), "W2": SECOND}, "pickles are not read"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, arrays, said):
    np.savez(tmp_path / "start.npz", **arrays)
    with pytest.raises(InputError, match=said):
        weights_from_file(tmp_path / "start.npz", "relu", TASK)


def test_other_files_are_refused_and_nothing_in_them_is_run(tmp_path):
    (tmp_path / "start.pt").write_bytes(b"\x80\x04cos\nsystem\n")
    for name, said in (("start.pt", "pickles are not read"), ("nowhere.npz", "does not exist")):
        with pytest.raises(InputError, match=said):
            weights_from_file(tmp_path / name, "relu", TASK)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("changes", "argument", "said"),
    [
        ({"kind": "diagonal"}, "kind", "kind is 'diagonal': choose 'relu', 'quadratic' or 'linear'"),
        ({"task": Expectation(lambda network: 0.0)}, "task", "a task with inputs and targets"),
        ({"path": "nowhere.npz"}, "path", "nowhere.npz does not exist"),
    ],
)
def test_an_argument_of_another_kind_is_refused_by_its_own_name(tmp_path, changes, argument, said):
    np.savez(tmp_path / "start.npz", W1=FIRST, W2=SECOND)
    with pytest.raises(InputError, match=said) as caught:
        weights_from_file(**{"path": tmp_path / "start.npz", "kind": "relu", "task": TASK} | changes)
    assert caught.value.argument == argument
