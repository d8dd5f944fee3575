from __future__ import annotations

import contextlib
import io
import re

import pytest

from dynascope.cli.progress import step
from dynascope.flows.progress import announce, report_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        """What was written, without the codes for colours and cursor."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())


@pytest.fixture(autouse=True)
def any_terminal(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_elsewhere_than_on_a_terminal_nothing_is_said(capsys, monkeypatch):
    monkeypatch.setattr("dynascope.cli.progress._SECONDS", 0)
    with step("Training"):
        report_progress(1, 2, "steps")
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_it_stays_on_standard_error(capsys):
    with contextlib.redirect_stderr(Terminal()) as terminal, step("Training"):
        pass
    assert re.search(r"Training … \d+\.\d s", terminal.shown())
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("text", ["Reading data[1].npz", "Reading [bold]x.npz", "Reading [/a]/x.npz"])
def test_brackets_in_a_file_name_are_shown_as_they_are(text):
    with contextlib.redirect_stderr(Terminal()) as terminal, step(text):
        pass
    assert f"{text} …" in terminal.shown()


def test_an_error_passes_through_and_is_not_reported_as_done():
    with contextlib.redirect_stderr(Terminal()) as said, pytest.raises(ZeroDivisionError), step("Training"):
        _ = 1 / 0
    assert "Training" in said.getvalue()
    assert not re.search(r"\d s", said.getvalue())


def test_an_error_passes_through_in_silence(capsys):
    with pytest.raises(ZeroDivisionError), step("Training"):
        _ = 1 / 0
    assert capsys.readouterr() == ("", "")


def test_a_bar_shows_what_is_done_of_what_is_planned(monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    with contextlib.redirect_stderr(Terminal()) as terminal, step("Training " + "a network of many words " * 9):
        report_progress(1_000, 50_000, "steps")
        report_progress(21_000, 50_000, "steps")
    said = terminal.shown()
    assert "━" in said
    assert "21000 of 50000 steps" in said


def test_where_nobody_watches_a_line_now_and_then_says_how_far_what_takes_long_is(capsys, monkeypatch):
    monkeypatch.setattr("dynascope.cli.progress._SECONDS", 0)
    with step("Working"):
        announce("It takes an hour.")
        announce("It takes an hour.")
        report_progress(1, 4, "steps")
    assert capsys.readouterr().err == "It takes an hour.\nWorking: 1 of 4 steps …\n"
    monkeypatch.setattr("dynascope.cli.progress._SECONDS", 3600)
    with step("Working"):
        announce("It takes an hour.")
        report_progress(1, 4, "steps")
    assert capsys.readouterr().err == "It takes an hour.\n"
