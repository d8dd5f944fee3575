from __future__ import annotations

import contextlib
import io
import re

import pytest

from dynascope.cli.progress import step
from dynascope.cli.progress_bar import Pace
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


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The clock by which a line on a terminal goes."""
    found = Clock()

    class ByHand(Pace):
        def __init__(self):
            super().__init__(found)

    monkeypatch.setattr("dynascope.cli.progress_bar.Pace", ByHand)
    monkeypatch.setenv("COLUMNS", "80")
    return found


def test_what_is_left_goes_by_the_pace_since_something_was_first_told():
    clock = Clock()
    pace = Pace(clock)
    assert (pace.elapsed, pace.left) == (0.0, None)
    clock.now += 50.0  # it compiles
    pace.hear(100, 1000, "steps")
    assert pace.left is None
    clock.now += 2.0
    pace.hear(300, 1000, "steps")
    assert pace.elapsed == 52.0
    # A hundred steps a second, of which 700 are left.
    assert pace.left == 7.0
    clock.now += 3.0
    assert pace.left == 4.0
    clock.now += 10.0
    assert pace.left == 0.0


@pytest.mark.parametrize("other", [(1, 1000, "steps"), (4, 5, "members")])
def test_another_computation_has_a_pace_of_its_own(other):
    clock = Clock()
    pace = Pace(clock)
    for done in (10, 500):
        clock.now += 1.0
        pace.hear(done, 1000, "steps")
    pace.hear(*other)
    assert (pace.done, pace.planned, pace.unit) == other
    assert pace.left is None


def test_what_is_done_is_not_shown_any_more():
    pace = Pace(Clock())
    pace.hear(1000, 1000, "steps")
    assert (pace.planned, pace.left) == (0.0, None)


def shown_after(clock: Clock, seconds: float, *told: float, text: str = "Training") -> str:
    """What a terminal of 80 columns shows of a step in which a third thing was told so long after its beginning."""
    with contextlib.redirect_stderr(Terminal()) as terminal, step(text):
        for done in told:
            report_progress(done, 50_000, "steps")
            clock.now += seconds / len(told)
    return terminal.shown()


def test_a_bar_shows_steps_done_of_steps_planned_and_both_times(clock):
    said = shown_after(clock, 60.0, 1_000, 11_000, 21_000)
    line = max(said.replace("\r", "\n").splitlines(), key=len)
    assert "Training" in line
    assert "━" in line
    assert "21000/50000 steps" in line
    assert "1:00, 0:38 left" in line
    assert len(line) <= 80


def test_what_takes_no_two_seconds_gets_no_bar(clock):
    said = shown_after(clock, 1.5, 1_000, 11_000, 21_000)
    assert "Training" in said
    assert "steps" not in said


def test_a_long_text_gives_way_to_the_bar(clock):
    said = shown_after(clock, 60.0, 1_000, 11_000, 21_000, text="Training " + "a network of many words " * 9)
    assert "21000/50000 steps 1:00" in " ".join(said.split())


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
