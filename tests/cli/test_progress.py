from __future__ import annotations

import contextlib
import io
import re

import pytest

from dynascope.cli.progress import step


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


def test_elsewhere_than_on_a_terminal_it_prints_a_line_before_and_a_line_after(capsys):
    with step("Training"):
        assert capsys.readouterr().err == "Training …\n"
    said = capsys.readouterr()
    assert re.fullmatch(r"Training: \d+\.\d s\n", said.err)
    assert said.out == ""


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


@pytest.mark.parametrize("screen", [Terminal, io.StringIO])
def test_an_error_passes_through_and_is_not_reported_as_done(screen):
    with contextlib.redirect_stderr(screen()) as said, pytest.raises(ZeroDivisionError), step("Training"):
        _ = 1 / 0
    assert "Training" in said.getvalue()
    assert not re.search(r"\d s", said.getvalue())
