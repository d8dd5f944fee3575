import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.tasks.data.images import Images

DRAW = np.random.default_rng(0)
PIXELS = DRAW.integers(256, size=(12, 5, 4, 3), dtype=np.uint8)
LABELS = np.arange(12) % 3
NAMES = ("a", "b", "c")


@pytest.fixture
def images():
    return Images(PIXELS, LABELS, NAMES, "letters", ("Read.",), Images(PIXELS[:5] // 2, LABELS[:5], NAMES))


def test_the_unit_scaling_divides_by_the_brightest(images):
    scaled = images.scaled()
    assert scaled.pixels.dtype == scaled.test.pixels.dtype == np.float32
    np.testing.assert_allclose(scaled.pixels * 255, PIXELS, rtol=1e-6)  # float32
    np.testing.assert_allclose(scaled.test.pixels * 255, PIXELS[:5] // 2, rtol=1e-6)
    assert (scaled.description[0], "1/255" in scaled.description[1]) == ("Read.", True)


def test_standardised_test_images_use_the_statistics_of_the_training_images(images):
    scaled = images.scaled("standardised")
    mean, deviation = PIXELS.mean(axis=(0, 1, 2)), PIXELS.std(axis=(0, 1, 2))
    np.testing.assert_allclose(scaled.pixels, (PIXELS - mean) / deviation, atol=1e-6)  # float32
    np.testing.assert_allclose(scaled.test.pixels, (PIXELS[:5] // 2 - mean) / deviation, atol=1e-6)


def test_a_constant_channel_is_named():
    still = PIXELS.copy()
    still[..., 1] = 3
    with pytest.raises(InputError, match="channel 2 of the images is constant") as error:
        Images(still, LABELS, NAMES).scaled("standardised")
    assert error.value.argument == "scaling"


def test_tasks_are_flat_and_one_hot(images):
    task = images.task()
    np.testing.assert_allclose(task.inputs, PIXELS.reshape(12, -1) / 255, rtol=1e-6)  # pixels are of float32
    np.testing.assert_array_equal(task.targets, np.eye(3)[LABELS])
    assert (task.name, task.target_names, task.image_shape) == ("letters", NAMES, None)
    standardised = images.scaled("standardised")
    np.testing.assert_array_equal(standardised.test.task().inputs, standardised.test.pixels.reshape(5, -1))


def test_scaled_images_are_labelled_data_without_a_copy(images):
    scaled = images.scaled()
    data = scaled.labelled()
    assert data.inputs is scaled.pixels
    assert data.labels is scaled.labels
    assert (data.class_names, data.name, data.description) == (NAMES, "letters", scaled.description)
    assert scaled.test.labelled().samples == 5
    with pytest.raises(InputError, match=r"pixels has values of type uint8") as error:
        images.labelled()
    assert error.value.argument == "pixels"


def test_only_images_of_one_channel_keep_their_shape():
    assert Images(PIXELS[..., :1], LABELS, NAMES).task().image_shape == (5, 4)


def test_a_subset_keeps_images_with_their_labels(images):
    subset = images.subset(7, seed=1)
    place = [int(np.flatnonzero((each == PIXELS).all(axis=(1, 2, 3)))[0]) for each in subset.pixels]
    assert len(set(place)) == subset.samples == 7
    np.testing.assert_array_equal(subset.labels, LABELS[place])
    assert subset.test is images.test
    np.testing.assert_array_equal(images.subset(7, seed=1).labels, subset.labels)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"pixels": PIXELS[0]}, "pixels"),
        ({"pixels": PIXELS.astype(float)}, "pixels"),
        ({"labels": LABELS[:4]}, "labels"),
        ({"labels": LABELS / 2}, "labels"),
        ({"labels": LABELS + 1}, "labels"),
        ({"labels": LABELS - 1}, "labels"),
        ({"class_names": ("a",)}, "class_names"),
        ({"pixels": PIXELS[:0], "labels": LABELS[:0]}, "pixels"),
        ({"test": Images(PIXELS[:, 1:], LABELS, NAMES)}, "test"),
        ({"test": Images(PIXELS, LABELS, ("a", "b", "d"))}, "test"),
    ],
)
def test_bad_parts_are_named(fields, argument):
    with pytest.raises(InputError) as error:
        Images(**{"pixels": PIXELS, "labels": LABELS, "class_names": NAMES, **fields})
    assert error.value.argument == argument


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    "bad",
    [
        lambda images: images.scaled("whitened"),
        lambda images: images.scaled().scaled(),
        lambda images: Images(np.zeros_like(PIXELS), LABELS, NAMES).scaled("standardised"),
        lambda images: images.subset(13),
        lambda images: images.subset(0),
    ],
)
def test_bad_requests_are_refused(images, bad):
    with pytest.raises(InputError):
        bad(images)
