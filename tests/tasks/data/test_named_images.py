from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from dynascope.errors import InputError
from dynascope.tasks import digits
from dynascope.tasks.data.named_images import image_shape, named_images


def test_digits_are_the_first_ones_with_their_labels():
    found, whole = named_images("digits", 30, seed=0), digits()
    np.testing.assert_array_equal(found.inputs, whole.inputs[:30])
    np.testing.assert_array_equal(found.labels, whole.targets.argmax(axis=1)[:30])
    assert image_shape(found) == (8, 8, 1)


def test_files_are_drawn_by_the_seed_and_standardised(tmp_path):
    draw = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for number in range(6):
            pixels = draw.integers(256, size=(4, 6, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / f"{number}.png")
    found, other = (named_images(str(tmp_path), 8, seed=seed) for seed in (0, 1))
    assert image_shape(found) == (4, 6, 3)
    assert found.inputs.dtype == np.float64
    assert not np.array_equal(found.inputs, other.inputs)
    np.testing.assert_allclose(found.inputs.mean(axis=(0, 1, 2)), 0, atol=1e-6)  # of pixels in single precision


def test_a_path_without_images_is_named(tmp_path):
    with pytest.raises(InputError):
        named_images(str(tmp_path / "nothing"), 8, seed=0)
