import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.flows.objective import Objective, Samples, check_statistics
from dynascope.networks import TwoLayer
from dynascope.tasks import Task
from dynascope.training import Descent, descend

TASK = Task([[1.0, 0.5], [-0.3, 2.0], [0.7, -1.1]], [[1.0, 0.0], [-0.5, 1.0], [0.8, 0.3]])


def test_the_loss_is_half_the_mean_over_samples_of_the_sum_over_outputs():
    network = TwoLayer(2, 3, 2)
    residual = TASK.inputs @ network.first @ network.second - TASK.targets
    with jax.enable_x64(True):
        loss = Objective(network, Samples(TASK.inputs, TASK.targets)).loss(None)
    assert float(loss) == pytest.approx(np.mean(np.sum(residual**2, axis=1)) / 2, rel=1e-14)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (TwoLayer(3, 3, 2), "cannot be applied to the inputs"),
        (TwoLayer(2, 3, 1), r"outputs of the network have shape \(3, 1\)"),
    ],
)
def test_a_network_that_does_not_fit_the_task_is_refused(network, message):
    with pytest.raises(InputError, match=message):
        descend(TASK, network, Descent(learning_rate=0.1, steps=1))


@pytest.mark.parametrize(
    ("statistics", "message"),
    [
        ({"loss": (jnp.sum, [])}, "has the name 'loss'"),
        ({"time": (jnp.sum, [])}, "has the name 'time'"),
        ({"stop_time": (jnp.sum, [])}, "has the name 'stop_time'"),
        ({"norm": (jnp.sum, ["norm"])}, "has the name 'norm'"),
        ({"norm": (jnp.sum, ["unit"]), "unit": (jnp.sum, [])}, "has the name 'unit'"),
        ({"norm": (jnp.sum, ["time"])}, "dimensions of time and members, which are implicit"),
    ],
)
def test_statistics_that_do_not_fit_a_record_are_refused(statistics, message):
    with pytest.raises(InputError, match=message):
        check_statistics(statistics)


def test_checked_statistics_are_hashable():
    assert hash(check_statistics({"norm": (jnp.sum, ["neuron"])})) == hash((("norm", jnp.sum, ("neuron",)),))
