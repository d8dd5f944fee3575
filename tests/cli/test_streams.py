from __future__ import annotations

import io
import os
import sys

from dynascope.cli.streams import outlive_readers


def test_a_pipe_takes_what_nobody_reads_any_more_and_keeps_its_letters(monkeypatch):
    reading, writing = os.pipe()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(os.fdopen(writing, "wb"), "ascii", "backslashreplace"))
    before = sys.stdout
    outlive_readers()
    own = sys.stdout
    assert own is not before
    assert (own.encoding, own.errors) == ("ascii", "backslashreplace")
    print("größe", file=own, flush=True)
    assert os.read(reading, 100) == b"gr\\xf6\\xdfe\n"
    os.close(reading)
    print("nobody", file=own, flush=True)
    print("nobody", file=own, flush=True)


def test_a_file_stays_what_it_is_and_a_closed_stream_takes_all(monkeypatch, tmp_path):
    with open(tmp_path / "told", "w") as file:
        monkeypatch.setattr("sys.stdout", file)
        monkeypatch.setattr("sys.stderr", None)
        outlive_readers()
        assert sys.stdout is file
        print("nobody", file=sys.stderr, flush=True)
        sys.stderr.close()
