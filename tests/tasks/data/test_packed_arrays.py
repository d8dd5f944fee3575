from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.tasks.data.packed_arrays import read_archive, read_array

FIVE = np.arange(10.0).reshape(5, 2)


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array)
    return file.getvalue()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_archive_gives_the_arrays_that_are_asked_for_and_all_names(tmp_path, save):
    save(tmp_path / "a.npz", x=FIVE, other=np.array([object()]))
    arrays, names = read_archive(tmp_path / "a.npz", ("x", "y"))
    assert list(arrays) == ["x"]
    np.testing.assert_array_equal(arrays["x"], FIVE)
    assert names == ["x", "other"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"PK and more", "is not a NumPy array"),
        (npy(FIVE)[:-8], "declares 80 bytes, but the data have 72"),
        (npy(FIVE) + b"0", "declares 80 bytes, but the data have 81"),
        (npy(FIVE).replace(b"(5, 2)", b"(9**9)"), "malformed"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "a header of 4294967295 bytes"),
    ],
)
def test_what_is_no_array_or_of_another_size_is_refused_before_it_is_read(tmp_path, data, problem):
    (tmp_path / "x.npy").write_bytes(data)
    with pytest.raises(ValueError, match=problem):
        read_array(tmp_path / "x.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", data)
    with pytest.raises(ValueError, match=problem):
        read_archive(tmp_path / "a.npz", ("x",))


def test_a_pickle_is_refused_by_what_its_header_says(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([{"a": 1}]))
    with pytest.raises(ValueError, match="pickles are not read"):
        read_archive(tmp_path / "a.npz", ("x",))


def test_more_than_may_be_unpacked_is_refused(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros(10**4))
    np.save(tmp_path / "x.npy", np.zeros(10**4))
    monkeypatch.setenv("DYNASCOPE_MEMORY", "50kB")
    assert (tmp_path / "a.npz").stat().st_size < 1000
    for read in (lambda: read_archive(tmp_path / "a.npz", ("x",)), lambda: read_array(tmp_path / "x.npy")):
        with pytest.raises(InputError, match=r"takes 80\.1 kB when unpacked, but the limit is 50 kB"):
            read()
