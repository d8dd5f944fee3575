import pytest

from dynascope.alternating.neurons import require_neurons
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
