from __future__ import annotations

import pytest

from dynascope.errors import InputError
from dynascope.tasks import read_text


def test_line_ends_and_byte_order_marks_are_removed(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes("\ufeffπ\r\nß\r".encode())
    assert read_text(path) == read_text(str(path)) == "π\nß\n"


def test_the_place_of_an_invalid_byte_is_named(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes("café".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.txt is not valid UTF-8 at byte 3: .*iconv") as error:
        read_text(path)
    assert (error.value.argument, error.value.value) == ("path", str(path))


def test_missing_files_folders_and_empty_files_are_rejected(tmp_path):
    (tmp_path / "empty.txt").touch()
    for path in (tmp_path, tmp_path / "absent.txt", tmp_path / "empty.txt"):
        with pytest.raises(InputError) as error:
            read_text(path)
        assert error.value.argument == "path"
