from __future__ import annotations

import subprocess
import sys

import pytest

from dynascope.cli import commands, main

LIST = [sys.executable, "-m", "dynascope", "list"]


@pytest.fixture
def ended(monkeypatch):
    """What runs the program and gives the code with which this process would have ended."""

    def run() -> int:
        with pytest.raises(SystemExit) as caught:
            main()
        return caught.value.code

    monkeypatch.setattr("os._exit", sys.exit)
    monkeypatch.setattr("sys.argv", ["dynascope", "list"])
    monkeypatch.setattr("dynascope.cli.interrupts.listen", lambda **_: None)
    return run


@pytest.mark.parametrize(
    ("error", "code", "told"), [(KeyboardInterrupt(), 130, "interrupted."), (IndexError("no"), 3, "(IndexError no)")]
)
def test_a_program_ends_itself_with_its_code_whatever_still_computes(ended, monkeypatch, capsys, error, code, told):
    def fail(*_):
        raise error

    monkeypatch.setattr("dynascope.cli.list_studies.study_index", fail)
    assert ended() == code
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


def test_an_interrupt_outside_of_a_command_ends_the_program_in_the_same_way(ended, monkeypatch, capfd):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "main", interrupt)
    assert ended() == 130
    assert capfd.readouterr().err == "dynascope: interrupted.\n"


def test_the_code_is_that_of_the_command_for_a_reader_who_leaves_and_where_nobody_reads():
    process = subprocess.Popen(LIST, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of its own")
def test_streams_that_are_closed_from_the_start_do_no_harm():
    done = subprocess.run(f'"{sys.executable}" -m dynascope list frob >&- 2>&-', shell=True, check=False)
    assert done.returncode == 2


@pytest.mark.skipif(sys.platform != "linux", reason="there is no device that is always full")
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_an_output_that_takes_nothing_is_named_as_full(flags):
    with open("/dev/full", "w") as full:
        done = subprocess.run([*LIST, *flags], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="there is no device that is always full")
def test_where_nothing_can_be_said_the_exit_code_says_it():
    with open("/dev/full", "w") as full:
        done = subprocess.run([*LIST, "frob"], stdout=full, stderr=full, check=False)
    assert done.returncode == 2
