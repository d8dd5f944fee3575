import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import correlate2d

from dynascope.compilation import filter_jit
from dynascope.errors import InputError
from dynascope.networks import VGG16
from dynascope.networks.convolution import Convolution, as_images, full_image_shape

DRAW = np.random.default_rng(0)


@pytest.mark.parametrize(("side", "stride"), [(3, 1), (3, 2), (1, 1), (1, 2)])
@pytest.mark.parametrize("height", [5, 6])
def test_it_correlates_padded_images(side, stride, height):
    layer = Convolution(2, 3, DRAW, side=side, stride=stride, bias=True, normalise=False)
    layer = eqx.tree_at(lambda each: each.bias, layer, DRAW.normal(size=3))
    x = DRAW.normal(size=(2, height, 4, 2))
    with jax.enable_x64(True):
        outputs, same = layer.apply(jnp.asarray(x), training=True)
    expected = [
        [
            sum(correlate2d(image[..., i], layer.kernel[..., i, o], mode="same") for i in range(2)) + layer.bias[o]
            for o in range(3)
        ]
        for image in x
    ]
    np.testing.assert_allclose(outputs, np.moveaxis(expected, 1, -1)[:, ::stride, ::stride], rtol=1e-10)
    assert same is layer


@pytest.mark.slow
def test_normalisation_follows_the_convolution():
    layer = Convolution(2, 3, DRAW)
    x = DRAW.normal(size=(4, 6, 6, 2)).astype(np.float32)
    outputs, new = jax.device_get(filter_jit(lambda layer, x: layer.apply(x, training=True))(layer, x))
    np.testing.assert_allclose(outputs.mean(axis=(0, 1, 2)), 0, atol=1e-5)  # float32
    assert new.normalisation.statistics.mean.any()
    assert not layer.normalisation.statistics.mean.any()


def test_kernels_have_the_variance_that_is_promised():
    kernel = Convolution(64, 64, DRAW).kernel
    # The sample deviation of 36 864 Gaussians is known to 0.4 %; five of them are allowed.
    assert np.std(kernel) == pytest.approx((2 / (9 * 64)) ** 0.5, rel=0.02)


def test_flat_images_are_shaped_with_channels_side_by_side():
    x = DRAW.normal(size=(2, 4, 5, 3)).astype(np.float32)
    np.testing.assert_array_equal(as_images(x.reshape(2, -1), (4, 5, 3)), x)
    np.testing.assert_array_equal(as_images(x, (4, 5, 3)), x)
    with pytest.raises(InputError, match="flat images of length 60"):
        as_images(x[:, 1:], (4, 5, 3))


def test_one_channel_may_be_left_out():
    assert full_image_shape((4, 5)) == (4, 5, 1)


def test_bad_image_shapes_are_refused():
    for bad in ((4,), (4, 0, 1), (4, 5, 1, 1)):
        with pytest.raises(InputError) as error:
            VGG16(bad, 2, width=2)
        assert error.value.argument == "image_shape"
