from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from dynascope.cli import main

LIST = [sys.executable, "-m", "dynascope", "list"]


@pytest.mark.parametrize(
    ("error", "code", "told"), [(KeyboardInterrupt(), 130, "interrupted."), (IndexError("no"), 3, "(IndexError no)")]
)
def test_what_ends_a_command_has_a_code_and_is_said_in_a_line(monkeypatch, capsys, error, code, told):
    def fail(*_):
        raise error

    monkeypatch.setattr("dynascope.cli.list_studies.study_index", fail)
    assert main(["list"]) == code
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="interrupts are no signals")
def test_an_interrupt_ends_a_run_with_its_code():
    # Whoever runs the tests in the background has switched interrupts off, and the process inherits that.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from dynascope.cli.program import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, "run", "conservation"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert said == "dynascope: interrupted.\n"


def test_a_reader_who_leaves_is_no_error():
    process = subprocess.Popen(LIST, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()


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
