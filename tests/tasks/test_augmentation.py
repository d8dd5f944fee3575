import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.tasks import CropAndFlip

# No two pixels are equal, and none is zero, so that an image tells from where it was cut.
IMAGES = np.arange(1, 1 + 400 * 5 * 4 * 2, dtype=np.float32).reshape(400, 5, 4, 2)
KEY = jax.random.key(1)


def windows(image, padding):
    """All images that a crop may give, by the corner of the window."""
    height, width, _ = image.shape
    framed = np.pad(image, ((padding, padding), (padding, padding), (0, 0)))
    corners = np.ndindex(2 * padding + 1, 2 * padding + 1)
    return {(row, column): framed[row : row + height, column : column + width] for row, column in corners}


def corner(image, found, padding):
    places = [place for place, window in windows(image, padding).items() if np.array_equal(window, found)]
    assert len(places) == 1
    return places[0]


@pytest.fixture(scope="module")
def cropped():
    return np.asarray(CropAndFlip(padding=2, flip=False)(KEY, IMAGES))


def test_a_crop_is_a_shift_of_the_image_with_zeros_where_it_ends(cropped):
    assert (cropped.shape, cropped.dtype) == (IMAGES.shape, IMAGES.dtype)
    corners = [corner(image, found, 2) for image, found in zip(IMAGES, cropped, strict=True)]
    counts = np.array([np.sum([each[axis] == place for each in corners]) for axis in (0, 1) for place in range(5)])
    # Five standard deviations of a binomial with 400 draws of probability 1/5.
    np.testing.assert_allclose(counts, 80, atol=5 * np.sqrt(400 * 0.2 * 0.8))
    assert len(set(corners)) == 25


def test_without_padding_images_are_mirrored_or_left():
    found = np.asarray(CropAndFlip(padding=0)(KEY, IMAGES))
    mirrored = np.array([np.array_equal(each, image[:, ::-1]) for image, each in zip(IMAGES, found, strict=True)])
    same = np.array([np.array_equal(each, image) for image, each in zip(IMAGES, found, strict=True)])
    assert np.all(mirrored ^ same)
    # Five standard deviations of a binomial with 400 draws of probability 1/2.
    assert mirrored.sum() == pytest.approx(200, abs=50)


def test_the_crops_do_not_depend_on_whether_images_are_mirrored(cropped):
    both = np.asarray(CropAndFlip(padding=2)(KEY, IMAGES))
    assert all(
        np.array_equal(each, image) or np.array_equal(each, image[:, ::-1])
        for image, each in zip(cropped, both, strict=True)
    )


def test_without_either_images_are_left_as_they_are():
    np.testing.assert_array_equal(CropAndFlip(padding=0, flip=False)(KEY, IMAGES), IMAGES)


def test_a_key_gives_the_same_images_again_in_a_program_and_in_double_precision():
    augment = CropAndFlip(padding=1)
    found = np.asarray(augment(KEY, IMAGES))
    np.testing.assert_array_equal(jit(augment)(KEY, IMAGES), found)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(augment(KEY, jnp.asarray(IMAGES)), found)
    assert not np.array_equal(augment(jax.random.key(2), IMAGES), found)


def test_it_is_found_again_by_its_values():
    assert len({CropAndFlip(), CropAndFlip(4, True), CropAndFlip(3)}) == 2


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("fields", "argument"),
    [({"padding": -1}, "padding"), ({"padding": 1.5}, "padding"), ({"flip": "no"}, "flip")],
)
def test_bad_settings_are_named(fields, argument):
    with pytest.raises(InputError) as error:
        CropAndFlip(**fields)
    assert error.value.argument == argument


@pytest.mark.usefixtures("unchecked_types")
def test_flat_images_are_refused():
    with pytest.raises(InputError, match=r"images has shape \(400, 40\)") as error:
        CropAndFlip()(KEY, IMAGES.reshape(400, -1))
    assert error.value.argument == "images"
