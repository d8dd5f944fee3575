"""One default scale for a network that is given by name or without dimensions, in all verbs and on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dynascope.cli import main
from dynascope.errors import InputError
from dynascope.flows import GradientFlow
from dynascope.networks import TwoLayer
from dynascope.prediction import default_scale, observe, predict, which
from dynascope.tasks import Task

TASK = Task(np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5, name="two modes")
BY_NAME, BY_SHAPE = "linear", TwoLayer(width=50)


@pytest.mark.parametrize("network", [BY_NAME, BY_SHAPE])
def test_a_network_without_weights_starts_at_the_default_scale(network):
    predicted, observed = predict(TASK, network), observe(TASK, network)
    drawn = TwoLayer(2, 50, 2)
    assert predicted.record.identical(predict(TASK, drawn, scale=1e-8).record.assign_attrs(weights="drawn"))
    assert observed.record.identical(observe(TASK, drawn, scale=1e-8).record)
    assert [(each.name, each.status, each.error) for each in which(TASK, network)] == [
        (each.name, each.status, each.error) for each in which(TASK, drawn, scale=1e-8)
    ]


def test_a_module_starts_from_its_weights():
    network = TwoLayer(2, 50, 2, scale=1e-3)
    seen = observe(TASK, network, method=GradientFlow(duration=0.01)).record
    assert seen.identical(observe(TASK, network, scale=1.0, method=GradientFlow(duration=0.01)).record)
    assert predict(TASK, network).record.attrs["scale"] == pytest.approx(1e-3, rel=0.2)


@pytest.mark.parametrize("kind", ["linear", "quadratic"])
def test_the_command_line_has_the_same_default(kind, tmp_path, capsys):
    np.savez(tmp_path / "two.npz", x=TASK.inputs, y=TASK.targets)
    main(["predict", str(tmp_path / "two.npz"), "--network", kind, "--raw", "--json", "--out", str(tmp_path)])
    scale = json.loads(capsys.readouterr().out)["scale"]
    assert scale == default_scale(TwoLayer(2, 50, 2, activation=kind)) == predict(TASK, kind).record.attrs["scale"]


@pytest.mark.parametrize(
    "argument", [{"input_dimension": 2}, {"output_dimension": 2}, {"scale": 0.1}, {"balance": 1.0}, {"seed": 3}]
)
def test_a_specification_has_no_weights_to_scale_or_draw(argument):
    with pytest.raises(InputError) as error:
        TwoLayer(width=50, **argument)
    assert error.value.argument in argument
    with pytest.raises(InputError, match="no weights"):
        BY_SHAPE(np.ones((1, 2)))
