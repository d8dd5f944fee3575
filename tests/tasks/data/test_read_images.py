import gzip

import numpy as np
import pytest
from PIL import Image

from dynascope.errors import InputError
from dynascope.tasks.data.read_images import read_images

CIFAR = bytes(range(1, 3)) + bytes(2 * 3072)


def write_idx(folder, part, labels, compress=False):
    for name, array in (("images-idx3", np.zeros((len(labels), 4, 4), np.uint8)), ("labels-idx1", np.array(labels))):
        shape = np.array(array.shape, ">u4").tobytes()
        data = b"\0\0\x08" + bytes([array.ndim]) + shape + array.astype(np.uint8).tobytes()
        (folder / f"{part}-{name}-ubyte").write_bytes(gzip.compress(data) if compress else data)


def test_a_path_without_images_is_refused(tmp_path):
    (tmp_path / "images.zip").write_bytes(b"PK")
    with pytest.raises(InputError, match="no file or folder"):
        read_images(tmp_path / "nothing")
    with pytest.raises(InputError, match="neither an IDX file"):
        read_images(tmp_path / "images.zip")


def test_a_folder_with_two_formats_is_refused(tmp_path):
    write_idx(tmp_path, "train", [0, 1])
    (tmp_path / "data_batch_1.bin").write_bytes(CIFAR)
    with pytest.raises(InputError, match="several formats: IDX files and the binary files of CIFAR-10"):
        read_images(tmp_path)


def test_numbered_classes_are_those_of_both_parts(tmp_path):
    write_idx(tmp_path, "train", [3, 10])
    write_idx(tmp_path, "t10k", [10, 5])
    images = read_images(tmp_path)
    assert images.class_names == ("3", "5", "10")
    assert (images.labels.tolist(), images.test.labels.tolist()) == ([0, 2], [2, 1])


def write_folders(folder):
    for name in ("train/cat/a.png", "train/dog/a.png", "test/dog/a.png"):
        (folder / name).parent.mkdir(parents=True)
        Image.fromarray(np.zeros((10, 10), np.uint8)).save(folder / name)


def write_cifar(folder):
    for name in ("data_batch_1.bin", "test_batch.bin"):
        (folder / name).write_bytes(bytes(3073))


def write_compressed_idx(folder):
    write_idx(folder, "train", [0, 1] * 10, compress=True)


@pytest.mark.parametrize(("write", "limit"), [(write_folders, 250), (write_cifar, 6000), (write_compressed_idx, 300)])
def test_all_files_together_must_fit_into_the_memory_limit(write, limit, tmp_path, monkeypatch):
    write(tmp_path)
    assert read_images(tmp_path).samples
    monkeypatch.setenv("DYNASCOPE_MEMORY", str(limit))
    with pytest.raises(InputError, match="with the files before it, takes"):
        read_images(tmp_path)
