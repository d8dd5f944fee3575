import numpy as np
import pytest
from PIL import Image

from dynascope.errors import InputError
from dynascope.tasks.data.read_images import read_images

DRAW = np.random.default_rng(0)
GREY = DRAW.integers(256, size=(3, 5, 4), dtype=np.uint8)
COLOUR = DRAW.integers(256, size=(2, 5, 4, 3), dtype=np.uint8)


def save(pixels, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def folder(tmp_path):
    for i, name in enumerate(("dog/a.png", "cat/b.pgm", "dog/c.bmp")):
        save(GREY[i], tmp_path / name)
    return tmp_path


def test_grey_images_have_one_channel(folder):
    (folder / "dog" / ".hidden.png").write_bytes(b"")
    (folder / "dog" / "notes.txt").write_text("none")
    (folder / ".cache").mkdir()
    images = read_images(folder)
    np.testing.assert_array_equal(images.pixels, GREY[[1, 0, 2], ..., None])
    assert images.labels.tolist() == [0, 1, 1]
    assert (images.class_names, images.test) == (("cat", "dog"), None)


def test_one_colour_image_gives_all_three_channels(folder):
    save(COLOUR[0], folder / "cat" / "z.png")
    pixels = read_images(folder).pixels
    np.testing.assert_array_equal(pixels[1], COLOUR[0])
    np.testing.assert_array_equal(pixels[0], np.repeat(GREY[1, ..., None], 3, axis=-1))


def test_transparency_is_dropped(folder):
    save(np.dstack([COLOUR[0], GREY[0]]), folder / "cat" / "z.png")
    np.testing.assert_array_equal(read_images(folder).pixels[1], COLOUR[0])


def test_compressed_photographs_are_read_nearly(folder):
    smooth = np.add.outer(np.arange(5), np.arange(4)).astype(np.uint8) * 20
    Image.fromarray(smooth).save(folder / "cat" / "z.JPEG", quality=95)
    # The compression loses a few of 256 grey levels.
    assert np.abs(read_images(folder).pixels[1, ..., 0].astype(int) - smooth).max() <= 6


def test_a_test_part_is_read_with_the_classes_of_the_training_part(tmp_path):
    for part, name, pixels in [
        ("Train", "cat/a.png", GREY[0]),
        ("Train", "dog/a.png", GREY[1]),
        ("val", "dog/a.png", COLOUR[0]),
    ]:
        save(pixels, tmp_path / part / name)
    images = read_images(tmp_path)
    assert images.pixels.shape == (2, 5, 4, 3)
    np.testing.assert_array_equal(images.test.pixels, COLOUR[:1])
    assert images.test.labels.tolist() == [1]


def deep(folder):
    Image.fromarray(np.full((5, 4), 1000, np.uint16)).save(folder / "cat" / "deep.png")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "cat" / "b.pgm").write_bytes(b"P5 4 5 255\n12"), "cat/b.pgm cannot be read as an image"),
        (lambda f: (f / "dog" / "a.png").write_bytes(b""), "dog/a.png cannot be read as an image"),
        (lambda f: save(GREY[0, :4], f / "dog" / "z.png"), "dog/z.png has 4 × 4 pixels, but cat/b.pgm has 5 × 4"),
        (lambda f: (f / "cat" / "b.pgm").unlink(), "the folder cat has no images"),
        (lambda f: (f / "cat").rename(f.parent / "gone"), "only one class among 2 images"),
        (deep, "more than eight bits"),
        (lambda f: (f / "train").mkdir(), "keep only train and test"),
    ],
)
def test_damage_is_named(folder, damage, message):
    inside = folder / "images"
    inside.mkdir()
    for each in ("cat", "dog"):
        (folder / each).rename(inside / each)
    damage(inside)
    with pytest.raises(InputError, match=message):
        read_images(inside)


def test_an_empty_folder_names_what_is_read(tmp_path):
    with pytest.raises(InputError, match="IDX files, the binary files of CIFAR, or one folder"):
        read_images(tmp_path)


def test_a_class_of_test_images_only_is_refused(tmp_path):
    for name in ("train/cat/a.png", "train/dog/a.png", "test/cow/a.png"):
        save(GREY[0], tmp_path / name)
    with pytest.raises(InputError, match="the class cow has test images but no training images"):
        read_images(tmp_path)
