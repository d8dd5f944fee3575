import numpy as np
import pytest

from dynascope.alternating import alternating_flow
from dynascope.alternating.neurons import padded, require_neurons
from dynascope.errors import InputError
from dynascope.networks import DeepLinear, DiagonalLinear, TwoLayer
from dynascope.tasks import regression


def test_a_sum_of_neurons_of_degree_two_is_taken():
    require_neurons(TwoLayer(3, 2, 1), exchangeable=True)
    require_neurons(DiagonalLinear(3))


def test_a_network_without_neurons_is_refused_by_its_name():
    with pytest.raises(InputError, match="the network is a DeepLinear") as caught:
        require_neurons(DeepLinear((3, 2, 1)))
    assert caught.value.argument == "network"


def test_neurons_tied_to_places_are_refused_where_they_have_to_be_exchanged():
    with pytest.raises(InputError, match="a DiagonalLinear of degree 2"):
        require_neurons(DiagonalLinear(3), exchangeable=True)


def test_rows_are_filled_up_to_few_sizes_but_not_beyond_the_network():
    rows = np.arange(1.0, 19.0).reshape(9, 2)
    for count, neurons, filled in [(1, 20, 8), (8, 20, 8), (9, 20, 16), (9, 10, 10), (9, 9, 9), (9, 1, 9), (0, 3, 3)]:
        found = padded(rows[:count], neurons)
        assert found.shape == (filled, 2)
        np.testing.assert_array_equal(found[:count], rows[:count])
        assert not found[count:].any()


@pytest.mark.slow
def test_how_far_rows_are_filled_up_does_not_change_a_prediction(monkeypatch):
    target = np.diag([3.0, 2.0, 1.0])
    task = regression(samples=20, input_covariance=np.ones(3), target_map=target, exact_moments=True)
    found = []
    for sizes in ((4,), (16,), (64,)):
        monkeypatch.setattr("dynascope.alternating.neurons._SIZES", sizes)
        found.append(alternating_flow(task, TwoLayer(3, 64, 3), scale=1e-4))
    assert found[0]["activated"].sum() >= 3
    for other in found[1:]:
        # Sums over other numbers of rows are rounded differently.
        np.testing.assert_allclose(other["jump_time"], found[0]["jump_time"], rtol=1e-9)
        np.testing.assert_allclose(other["loss_after"], found[0]["loss_after"], atol=1e-9 * task.target_power)
