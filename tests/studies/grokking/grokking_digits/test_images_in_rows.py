import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.grokking.grokking_digits.images_in_rows import images_in_rows
from dynascope.tasks.data.labelled_images import LabelledImages


def labelled(pixels):
    return LabelledImages(
        np.array(pixels)[..., None], np.array([0, 1]), np.zeros((1, 1, 3, 1)), np.array([1]), 2, "dots", ()
    )


def test_pixels_go_from_zero_to_one_and_those_that_never_change_are_blank():
    images = images_in_rows(labelled([[[3.0, 1.0, 7.0]], [[5.0, 1.0, 3.0]]]))
    np.testing.assert_array_equal(images.inputs, [[0.0, 0.0, 1.0], [0.5, 0.0, 0.0]])
    np.testing.assert_array_equal(images.test_inputs, [[-0.75, -0.25, -0.75]])
    np.testing.assert_array_equal(images.blank, [1])
    np.testing.assert_array_equal(images.targets, np.eye(2))
    np.testing.assert_array_equal(images.test_targets, [[0, 1]])


def test_images_that_are_all_the_same_are_refused():
    with pytest.raises(InputError, match="are identical"):
        images_in_rows(labelled([[[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]]]))


@pytest.mark.parametrize(("channels", "kept"), [(1, False), (3, True)])
def test_an_earlier_scaling_is_described_only_if_it_is_not_undone(channels, kept):
    pixels = np.random.default_rng(0).normal(size=(2, 1, 3, channels))
    data = LabelledImages(pixels, np.array([0, 1]), pixels, np.array([0, 1]), 2, "dots", ("Dots.",), ("Scaled.",))
    description = images_in_rows(data).description
    assert description[0] == "Dots."
    assert ("Scaled." in description) == kept
