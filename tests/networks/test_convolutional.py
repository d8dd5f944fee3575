import equinox as eqx
import jax
import numpy as np
import pytest
from scipy.signal import correlate2d

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.networks import Convolutional


@pytest.fixture(scope="module")
def network():
    plain = Convolutional((5, 6), 3, channels=(2, 3), width=4, activation="tanh", seed=1)
    draw = np.random.default_rng(0)
    biases = (
        tuple(draw.normal(size=each.shape) for each in plain.kernel_biases),
        draw.normal(size=4),
        draw.normal(size=3),
    )
    return eqx.tree_at(lambda n: (n.kernel_biases, n.hidden_bias, n.classifier_bias), plain, biases)


@jit
def features_and_outputs(network, images):
    return network.features(images), network(images)


def _by_hand(network, image):
    """Convolve, squash and pool one image with plain loops."""
    maps = image[None]
    for kernel, bias in zip(network.kernels, network.kernel_biases, strict=True):
        convolved = [
            sum(correlate2d(each, kernel[:, :, i, o], mode="same") for i, each in enumerate(maps)) + bias[o]
            for o in range(len(bias))
        ]
        rows, columns = maps.shape[1] // 2, maps.shape[2] // 2
        maps = np.array(
            [
                [[np.tanh(m)[2 * r : 2 * r + 2, 2 * c : 2 * c + 2].mean() for c in range(columns)] for r in range(rows)]
                for m in convolved
            ]
        )
    return np.tanh(np.moveaxis(maps, 0, -1).ravel() @ network.hidden + network.hidden_bias)


def test_it_is_convolutions_and_pooling_and_two_dense_layers(network):
    images = np.random.default_rng(2).normal(size=(3, 30))
    expected = np.array([_by_hand(network, image.reshape(5, 6)) for image in images])
    with jax.enable_x64(True):
        features, outputs = features_and_outputs(network, images)
    np.testing.assert_allclose(features, expected, rtol=1e-12)
    np.testing.assert_allclose(outputs, expected @ network.classifier + network.classifier_bias, rtol=1e-12)


def test_a_sample_does_not_depend_on_its_batch(network):
    images = np.random.default_rng(3).normal(size=(3, 30))
    with jax.enable_x64(True):
        (_, outputs), (_, others) = (features_and_outputs(network, each) for each in (images, images[[1, 0, 0]]))
    np.testing.assert_allclose(others[0], outputs[1], rtol=1e-12)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"image_shape": (3, 8)}, "image_shape"),
        ({"image_shape": (8,)}, "image_shape"),
        ({"channels": ()}, "channels"),
        ({"channels": (4, 0)}, "channels"),
        ({"activation": "step"}, "activation"),
        ({"outputs": 0}, "outputs"),
        ({"width": -1}, "width"),
    ],
)
def test_bad_input_is_named(fields, argument):
    with pytest.raises(InputError) as error:
        Convolutional(**{"image_shape": (8, 8), "outputs": 2, **fields})
    assert error.value.argument == argument


def test_a_network_that_cannot_fit_is_refused_with_the_bytes_it_would_need():
    for name, large in {
        "width": {"width": 10**10},
        "outputs": {"outputs": 10**12},
        "channels": {"channels": (8, 10**11)},
    }.items():
        with pytest.raises(InputError, match=r"arrays of .* GB") as caught:
            Convolutional(**{"image_shape": (8, 8), "outputs": 2, **large})
        assert caught.value.argument == name
