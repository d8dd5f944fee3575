from __future__ import annotations

import dataclasses
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.flows import GradientFlow
from dynascope.networks import TwoLayer
from dynascope.prediction import observe
from dynascope.probes.alignment import layer_imbalance
from dynascope.results import make_record, variables_of
from dynascope.results.named_tuples import short_repr
from dynascope.tasks import Task
from dynascope.training import Descent, descend


class Found(NamedTuple):
    rate: Annotated[Any, ""]
    curve: Annotated[Any, "time layer"]
    missing: Annotated[Any, "time"] = None

    __repr__ = short_repr


def test_fields_become_variables_over_their_dimensions():
    variables = variables_of(Found(0.5, np.ones((3, 2))))
    assert {name: dimensions for name, (dimensions, _) in variables.items()} == {"rate": (), "curve": ("time", "layer")}
    assert variables_of(Found(0.5, np.ones(2)))["curve"][0] == ("layer",)
    record = make_record(variables, {"time": [0.0, 1.0, 2.0], "layer": [1, 2]})
    assert record["curve"].dims == ("time", "layer")


def test_a_field_without_dimensions_is_rejected_by_name():
    class Bare(NamedTuple):
        rate: float

    with pytest.raises(InputError, match="rate of Bare has no dimension names"):
        variables_of(Bare(0.5))


def test_numbers_are_short_and_large_arrays_are_summarised():
    assert repr(Found(1 / 3, np.array([1e-9, 2.0]))) == "Found(rate=0.33333, curve=[1e-09, 2], missing=None)"
    large = np.linspace(-1, 2, 12).reshape(4, 3)
    large[0, 0] = np.nan
    shown = repr(Found(np.float32(2), large, large > 0))
    assert shown == (
        "Found(\n    rate=2,\n    curve=<shape (4, 3), -0.72727 to 2, 1 not finite>,\n"
        "    missing=<shape (4, 3), 8 of 12 true>,\n)"
    )
    assert repr(Found(None, np.zeros(9), (0.25,))) == "Found(rate=None, curve=<shape (9,), all 0>, missing=(0.25,))"


def test_results_in_results_are_indented():
    shown = repr(Found(Found(1, "x" * 80), np.ones(2)))
    assert shown.splitlines()[1:4] == ["    rate=Found(", "        rate=1,", f"        curve='{'x' * 80}',"]


def test_a_data_class_keeps_the_repr_of_its_body():
    @dataclasses.dataclass(frozen=True)
    class Counts:
        samples: int
        layers: tuple[Any, ...]

        __repr__ = short_repr

    assert (
        repr(Counts(3, (np.arange(3), np.arange(20))))
        == "Counts(samples=3, layers=([0, 1, 2], <shape (20,), 0 to 19>))"
    )


def test_arrays_of_every_library_are_shown_and_traced_ones_by_shape():
    seen = []

    def trace(values):
        seen.append(repr(Found(values, values)))
        return Found(values, values)

    assert repr(jit(trace)(jnp.array([1.0, 0.5]))) == "Found(rate=[1, 0.5], curve=[1, 0.5], missing=None)"
    assert seen == ["Found(rate=<shape (2,)>, curve=<shape (2,)>, missing=None)"]


def test_tensors_with_gradients_are_shown():
    torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
    tensor = torch.ones(3, 4, requires_grad=True)
    assert repr(Found(tensor[0, :2], tensor)) == "Found(rate=[1, 1], curve=<shape (3, 4), all 1>, missing=None)"


def test_results_of_probes_map_over_members():
    weights = [jnp.ones((5, 3, 2)), jnp.ones((5, 2, 4))]
    with jax.enable_x64(True):
        mapped = jax.vmap(lambda first, second: layer_imbalance([first, second]))(*weights)
    np.testing.assert_allclose(
        mapped.balance, layer_imbalance([np.ones((3, 2)), np.ones((2, 4))]).balance[0] * np.ones((5, 1))
    )


@pytest.mark.slow
def test_results_of_probes_are_recorded_under_the_names_of_their_fields():
    task, network = Task(np.eye(2), np.eye(2)), TwoLayer(2, 3, 2, activation="linear")

    def balance(network):
        return layer_imbalance([network.first, network.second])

    observed = observe(task, network, method=GradientFlow(duration=0.5, save=5), probes=[balance]).record
    descended = descend(task, network, Descent(steps=5, learning_rate=0.1, save=[0, 5], probe=balance))
    expected = layer_imbalance([np.asarray(network.first), np.asarray(network.second)])
    for record, clock in ((observed, "time"), (descended, "step")):
        for name, value in expected._asdict().items():
            assert record[name].dims == (clock, "layer")
            np.testing.assert_allclose(record[name][0], value, rtol=1e-5)
