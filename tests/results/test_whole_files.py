from __future__ import annotations

import os

import pytest

from dynascope.errors import InputError
from dynascope.results.whole_files import written_beside


def test_a_file_does_not_take_the_place_of_a_folder(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="is a folder"), written_beside(tmp_path / "folder") as partial:
        partial.write_text("new")
    assert os.listdir(tmp_path) == ["folder"]


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "note.txt"
    target.write_text("old")

    def stopped_half_way() -> None:
        with written_beside(target) as partial:
            partial.write_text("ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped_half_way()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["note.txt"]
