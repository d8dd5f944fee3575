import numpy as np
import pytest

from dynascope.alternating.neurons import padded, require_neurons
from dynascope.errors import InputError
from dynascope.networks import DeepLinear, DiagonalLinear, TwoLayer


def test_a_sum_of_neurons_of_degree_two_is_taken():
    require_neurons(TwoLayer(3, 2, 1), exchangeable=True)
    require_neurons(DiagonalLinear(3))


def test_a_network_without_neurons_is_refused_by_its_name():
    with pytest.raises(InputError, match=r"the network is a DeepLinear.*: give a sum of neurons") as caught:
        require_neurons(DeepLinear((3, 2, 1)))
    assert caught.value.argument == "network"


def test_neurons_tied_to_places_are_refused_where_they_have_to_be_exchanged():
    with pytest.raises(InputError, match="a DiagonalLinear of degree 2: give a sum of exchangeable neurons"):
        require_neurons(DiagonalLinear(3), exchangeable=True)


def test_rows_are_filled_up_to_few_sizes_but_not_beyond_the_network():
    rows = np.arange(1.0, 13.0).reshape(6, 2)
    for count, neurons, filled in [(1, 20, 4), (4, 20, 4), (5, 20, 16), (6, 10, 10), (6, 6, 6), (6, 1, 6), (0, 3, 3)]:
        found = padded(rows[:count], neurons)
        assert found.shape == (filled, 2)
        np.testing.assert_array_equal(found[:count], rows[:count])
        assert not found[count:].any()
