"""Patches of photographs: rotations, standardisation, and training patches apart from test patches."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from PIL import Image

from dynascope.errors import InputError
from dynascope.studies.regimes.filters.patches import photographs, rotated_patches, windows


def test_the_photographs_have_the_size_of_the_files():
    assert [each.shape for each in photographs()] == [(427, 640), (427, 640)]
    assert all(0 <= each.min() < each.max() <= 1 for each in photographs())


def test_patches_are_standardised_and_rotated():
    found = rotated_patches("photographs", 12, 5, side=32, seed=3)
    assert found.inputs.shape == (48, 32, 32)
    assert found.test_inputs.shape == (20, 32, 32)
    np.testing.assert_allclose(found.inputs.mean(axis=(1, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(found.inputs.std(axis=(1, 2)), 1, rtol=1e-4)
    for patch, label in zip(found.inputs, found.labels, strict=True):
        first = found.inputs[np.flatnonzero((found.inputs == np.rot90(patch, -label)).all(axis=(1, 2)))]
        assert len(first) == 1
    np.testing.assert_array_equal(np.bincount(found.labels), 12)


def columns(patches, images, side):
    """For each patch, the image and the column that it was taken from."""
    views = [np.lib.stride_tricks.sliding_window_view(image, (side, side)) for image in images]
    places = []
    for patch in patches:
        for k, view in enumerate(views):
            # The ratio of two differences of pixels does not depend on the standardisation.
            ends = view[:, :, 0, 0], view[:, :, -1, -1], view[:, :, 0, -1]
            a, b, c = patch[0, 0], patch[-1, -1], patch[0, -1]
            near = np.abs((ends[0] - ends[1]) * (a - c) - (ends[0] - ends[2]) * (a - b)) < 1e-5
            for row, column in np.argwhere(near):
                given = view[row, column]
                if np.allclose((given - given.mean()) / given.std(), patch, atol=1e-3):
                    places.append((k, int(column)))
    return places


def test_training_and_test_patches_do_not_overlap():
    side, found, images = 32, rotated_patches("photographs", 25, 25, side=32, seed=1), photographs()
    train, test = (columns(each[::4], images, side) for each in (found.inputs, found.test_inputs))
    assert len(train) >= 25
    assert len(test) >= 25
    assert all(k != other or abs(a - b) >= side for k, a in train for other, b in test)


def test_windows_give_the_convolution():
    draw = np.random.default_rng(0)
    images, kernel = draw.normal(size=(3, 20, 20)), draw.normal(size=(7, 7, 2))
    found = windows(images, 7, 3) @ kernel.reshape(49, 2)
    with jax.enable_x64(True):
        expected = jax.lax.conv_general_dilated(
            images[..., None], kernel[:, :, None], (3, 3), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-10)


def write_images(folder, count, side, *, flat=False):
    draw = np.random.default_rng(0)
    for k in range(count):
        target = folder / "ab"[k % 2]
        target.mkdir(exist_ok=True, parents=True)
        pixels = np.full((side, side, 3), 90 + k) if flat else draw.integers(256, size=(side, side, 3))
        Image.fromarray(pixels.astype(np.uint8)).save(target / f"{k}.png")


def test_user_images_are_split_by_image(tmp_path):
    write_images(tmp_path, 8, 32)
    found = rotated_patches(str(tmp_path), 30, 10, side=32, seed=0)
    train, test = ({each.tobytes() for each in part[::4]} for part in (found.inputs, found.test_inputs))
    assert len(train) == 6
    assert len(test) == 2
    assert not train & test


@pytest.mark.parametrize(("side", "flat", "words"), [(20, False, "20 × 20"), (40, True, "contrast")])
def test_small_or_flat_images_are_rejected(tmp_path, side, flat, words):
    write_images(tmp_path, 4, side, flat=flat)
    with pytest.raises(InputError, match=words) as caught:
        rotated_patches(str(tmp_path), 20, 20, side=32, seed=0)
    assert caught.value.argument == "data"
