from __future__ import annotations

import os
import threading
import time

import pytest

from dynascope.errors import InputError
from dynascope.results import one_writer as room
from dynascope.results.one_writer import one_writer

locks = pytest.mark.skipif(room._locks is None, reason="the system has no such locks")


@locks
def test_a_second_writer_is_refused_when_its_patience_ends(tmp_path):
    target = tmp_path / "study.zarr"
    with one_writer(target):
        with pytest.raises(InputError, match="another process is writing") as caught, one_writer(target, patience=0.0):
            pass
        with one_writer(tmp_path / "other.zarr", patience=0.0):
            pass
    assert caught.value.argument == "path"
    assert os.listdir(tmp_path) == []


@locks
def test_of_many_writers_one_writes_at_a_time(tmp_path):
    target, inside, most = tmp_path / "study.zarr", [], []

    def write():
        with one_writer(target):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.005)
            inside.pop()

    threads = [threading.Thread(target=write) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert most == [1] * 8
    assert os.listdir(tmp_path) == []


def test_after_an_error_the_next_one_writes(tmp_path):
    target = tmp_path / "study.zarr"
    with pytest.raises(KeyboardInterrupt), one_writer(target):
        raise KeyboardInterrupt
    with one_writer(target, patience=0.0):
        pass


def test_without_locks_nobody_waits(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "_locks", None)
    target = tmp_path / "study.zarr"
    with one_writer(target), one_writer(target, patience=0.0):
        assert os.listdir(tmp_path) == []
