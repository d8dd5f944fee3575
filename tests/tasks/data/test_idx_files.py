import gzip

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.tasks.data.read_images import read_images

DRAW = np.random.default_rng(0)
PIXELS = DRAW.integers(256, size=(7, 5, 4), dtype=np.uint8)
LABELS = np.array([3, 1, 4, 1, 5, 4, 3], np.uint8)


def idx(array):
    """The bytes of an IDX file of unsigned bytes."""
    return b"\0\0\x08" + bytes([array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def save(folder, part="train", pixels=PIXELS, labels=LABELS, compress=False, dot="-"):
    for what, array, axes in (("images", pixels, 3), ("labels", labels, 1)):
        data = idx(array)
        name = f"{part}-{what}{dot}idx{axes}-ubyte"
        (folder / (f"{name}.gz" if compress else name)).write_bytes(gzip.compress(data) if compress else data)
    return folder


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("dot", ["-", "."])
def test_both_parts_are_read_back(tmp_path, compress, dot):
    save(save(tmp_path, compress=compress, dot=dot), "t10k", PIXELS[:3] // 2, LABELS[:3], compress, dot)
    images = read_images(tmp_path)
    np.testing.assert_array_equal(images.pixels, PIXELS[..., None])
    np.testing.assert_array_equal(images.test.pixels, PIXELS[:3, ..., None] // 2)
    assert images.class_names == images.test.class_names == ("1", "3", "4", "5")
    assert images.labels.tolist() == [1, 0, 2, 0, 3, 2, 1]
    assert images.test.labels.tolist() == [1, 0, 2]
    assert images.name == tmp_path.name
    assert "7 images of 5 × 4 pixels" in images.description[0]


def test_one_file_is_one_part(tmp_path):
    save(save(tmp_path), "t10k")
    images = read_images(tmp_path / "train-images-idx3-ubyte")
    assert images.samples == 7
    assert images.test is None


def test_a_test_part_alone_is_read_too(tmp_path):
    images = read_images(save(tmp_path, "emnist-test"))
    assert (images.samples, images.test) == (7, None)


def test_a_file_beside_its_compressed_copy_counts_once(tmp_path):
    save(save(tmp_path), compress=True)
    assert read_images(tmp_path).samples == 7


def test_a_name_that_ends_in_gz_does_not_make_a_file_compressed(tmp_path):
    for path in save(tmp_path).iterdir():
        path.rename(path.with_name(f"{path.name}.gz"))
    np.testing.assert_array_equal(read_images(tmp_path).pixels[..., 0], PIXELS)


def spoil(change):
    def spoiled(folder):
        path = folder / "train-images-idx3-ubyte"
        path.write_bytes(change(path.read_bytes()))

    return spoiled


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (spoil(lambda data: idx(LABELS)), "begins with 00000801 instead of 00000803"),
        (spoil(lambda data: b""), "begins with nothing"),
        (spoil(lambda data: data[:10]), "begins with"),
        (spoil(lambda data: data[:-1]), "contains 139 bytes"),
        (spoil(lambda data: data + b"\0"), "contains more than 140 bytes"),
        (spoil(lambda data: gzip.compress(data)[:-20]), "cannot be decompressed"),
        (spoil(lambda data: idx(PIXELS[:0])), "contains 0 bytes"),
        (spoil(lambda data: idx(PIXELS[:-1])), "has 6 images, but train-labels-idx1-ubyte has 7 labels"),
        (lambda folder: (folder / "train-labels-idx1-ubyte").unlink(), "no file train-labels-idx1-ubyte next to"),
        (lambda folder: save(folder, "emnist-train"), "several files of images"),
        (lambda folder: save(folder, labels=np.zeros(7, np.uint8)), "only one class among 7 images"),
        (lambda folder: save(folder, "t10k", PIXELS[:, 1:]), "test images have"),
    ],
)
def test_damage_is_named(tmp_path, damage, message):
    damage(save(tmp_path))
    with pytest.raises(InputError, match=message):
        read_images(tmp_path)
