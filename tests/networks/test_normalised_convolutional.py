from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import pytest

from dynascope.compilation import filter_jit
from dynascope.errors import InputError
from dynascope.networks.normalised_convolutional import NormalisedConvolutional
from dynascope.symmetry import find_symmetries

IMAGES = np.random.default_rng(0).normal(size=(7, 64))
NETWORK = NormalisedConvolutional(8, 3, channels=(2, 3), width=4)


@filter_jit
def computed(network):
    return network(IMAGES)


def test_it_does_not_see_the_scale_of_a_channel_and_normalises_as_is_said():
    with jax.enable_x64(True):
        outputs = computed(NETWORK)
        scaled = eqx.tree_at(lambda each: each.kernels[1], NETWORK, NETWORK.kernels[1] * np.array([0.1, 2.0, 30.0]))
        assert np.allclose(computed(scaled), outputs, rtol=1e-11)
        flipped = eqx.tree_at(lambda each: each.gains[0], NETWORK, -NETWORK.gains[0])
        assert not np.allclose(computed(flipped), outputs, rtol=1e-2)


@pytest.mark.slow
def test_all_kinds_of_symmetries_are_found_in_it():
    with jax.enable_x64(True):
        found = find_symmetries(lambda network, x: jax.nn.log_softmax(network(x)), NETWORK, IMAGES)
    sizes = {kind: sum(each.size for each in found.symmetries if each.kind == kind) for kind in ("scale", "rescale")}
    # Channels before a normalisation; channels and neurons before a ReLU.
    assert sizes == {"scale": 2 + 3, "rescale": 2 + 3 + 4}
    # The weights of each neuron of the last layer, and its biases.
    assert sum(each.size for each in found.symmetries if each.kind == "translation") == 4 + 1


def test_images_that_are_too_small_are_refused():
    with pytest.raises(InputError) as caught:
        NormalisedConvolutional(4, 3, channels=(2, 3, 4), width=4)
    assert caught.value.argument == "channels"
