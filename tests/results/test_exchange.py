from __future__ import annotations

import pytest

from dynascope.results import exchange
from dynascope.results.exchange import exchanged


@pytest.fixture
def folders(tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "name").write_text(name)
    return tmp_path / "old", tmp_path / "new"


def test_folders_change_places_or_stay(folders):
    done = exchanged(*folders)
    told = [(folder / "name").read_text() for folder in folders]
    assert told == (["new", "old"] if done else ["old", "new"])


def test_where_one_is_missing_nothing_is_done(folders):
    assert not exchanged(folders[0], folders[1].with_name("missing"))
    assert (folders[0] / "name").read_text() == "old"


def test_a_system_without_the_call_says_so(folders, monkeypatch):
    monkeypatch.setattr(exchange, "_exchange", lambda: None)
    assert not exchanged(*folders)
    assert (folders[0] / "name").read_text() == "old"
