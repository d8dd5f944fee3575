import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.tasks.data.read_images import read_images

DRAW = np.random.default_rng(0)
PIXELS = DRAW.integers(256, size=(6, 32, 32, 3), dtype=np.uint8)
FINE = np.array([9, 0, 3, 9, 1, 0], np.uint8)
COARSE = np.array([2, 1, 0, 19, 1, 1], np.uint8)


def records(*labels, pixels=PIXELS):
    """The bytes of a batch: labels, then the pixels of each channel, row by row."""
    planes = np.moveaxis(pixels, -1, 1).reshape(len(pixels), -1)
    return np.hstack([*(label[: len(pixels), None] for label in labels), planes]).tobytes()


@pytest.fixture
def ten(tmp_path):
    (tmp_path / "data_batch_1.bin").write_bytes(records(FINE))
    (tmp_path / "data_batch_2.bin").write_bytes(records(FINE, pixels=PIXELS[:2]))
    (tmp_path / "test_batch.bin").write_bytes(records(FINE, pixels=PIXELS[:4]))
    (tmp_path / "batches.meta.txt").write_text("\n".join(f"kind {i}" for i in range(10)) + "\n\n")
    return tmp_path


@pytest.fixture
def hundred(tmp_path):
    (tmp_path / "train.bin").write_bytes(records(COARSE, FINE * 11))
    (tmp_path / "test.bin").write_bytes(records(COARSE, FINE, pixels=PIXELS[:2]))
    (tmp_path / "coarse_label_names.txt").write_text("\n".join(f"group {i}" for i in range(20)))
    return tmp_path


def test_batches_of_ten_classes_are_read_in_order(ten):
    images = read_images(ten)
    np.testing.assert_array_equal(images.pixels, np.concatenate([PIXELS, PIXELS[:2]]))
    assert images.labels.tolist() == [*FINE.tolist(), 9, 0]
    np.testing.assert_array_equal(images.test.pixels, PIXELS[:4])
    assert images.class_names[3] == "kind 3"


def test_both_kinds_of_label_of_a_hundred_classes_are_read(hundred):
    fine, coarse = read_images(hundred), read_images(hundred, coarse_labels=True)
    np.testing.assert_array_equal(fine.pixels, PIXELS)
    assert fine.labels.tolist() == (FINE * 11).tolist()
    assert fine.class_names == tuple(map(str, range(100)))
    assert coarse.labels.tolist() == COARSE.tolist()
    assert coarse.test.labels.tolist() == [2, 1]
    assert coarse.class_names[19] == "group 19"


def test_one_batch_is_read_alone(ten):
    images = read_images(ten / "data_batch_2.bin")
    assert (images.samples, images.test, images.class_names[0]) == (2, None, "kind 0")


def test_coarse_labels_need_a_hundred_classes(ten):
    with pytest.raises(InputError, match="no coarse labels"):
        read_images(ten, coarse_labels=True)


def write(name, change):
    return lambda folder: (folder / name).write_bytes(change((folder / "data_batch_1.bin").read_bytes()))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (write("data_batch_1.bin", lambda data: data[:-1]), "not a whole number of images"),
        (write("data_batch_1.bin", lambda data: b""), "holds 0 bytes"),
        (write("data_batch_1.bin", lambda data: b"\x0a" + data[1:]), "the label 10, but there are 10 classes"),
        (write("batches.meta.txt", lambda data: b"one\ntwo\n"), "has 2 names for 10 classes"),
        (write("batches.meta.txt", lambda data: b"\xff\xfe"), "is not text"),
        (write("train.bin", lambda data: data), "CIFAR-10 and the binary files of CIFAR-100"),
    ],
)
def test_damage_is_named(ten, damage, message):
    damage(ten)
    with pytest.raises(InputError, match=message):
        read_images(ten)


def test_the_pickled_version_is_never_opened(tmp_path):
    (tmp_path / "data_batch_1").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    with pytest.raises(InputError, match=r"binary version, whose files end in \.bin"):
        read_images(tmp_path)
