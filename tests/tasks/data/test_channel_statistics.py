import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.tasks.data.channel_statistics import channel_statistics

PIXELS = np.random.default_rng(0).integers(256, size=(7, 5, 4, 3), dtype=np.uint8)


def test_they_are_those_of_all_pixels_of_a_channel():
    mean, deviation = channel_statistics(PIXELS)
    np.testing.assert_allclose(mean, PIXELS.mean(axis=(0, 1, 2)), rtol=1e-13)
    np.testing.assert_allclose(deviation, PIXELS.std(axis=(0, 1, 2)), rtol=1e-12)


def test_a_constant_channel_is_named():
    still = PIXELS.copy()
    still[..., 1] = 3
    with pytest.raises(InputError, match="channel 2 of the images is constant") as error:
        channel_statistics(still)
    assert error.value.argument == "scaling"
