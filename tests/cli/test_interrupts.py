from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

# A process that listens, and then does one thing.
BEGIN = """
import signal, sys, time
from dynascope.cli import interrupts
from dynascope.cli.failure import Failure
interrupts.listen(as_json={json})
print("begun", flush=True)
"""
# What Python cannot interrupt, though other threads go on: as a compiler does.
DEAF = """
import hashlib
hashlib.pbkdf2_hmac("sha256", b"", b"", 10**8)
"""
ANSWERED = """
try:
    time.sleep(30)
except KeyboardInterrupt as error:
    failure = Failure.of(error)
    time.sleep(1.5)  # as long as an answer may take
    sys.exit(failure.code)
"""
LOST = """
class Deaf:
    def __del__(self):
        time.sleep(30)
thing = Deaf()
del thing
time.sleep(30)
"""
TRANSLATED = """
try:
    try:
        time.sleep(30)
    except KeyboardInterrupt:
        raise RuntimeError("a program failed") from None
except RuntimeError as error:
    failure = Failure.of(error)
    print(failure.message)
    sys.exit(failure.code)
"""
WRITING = """
import hashlib
try:
    with interrupts.uninterrupted():
        hashlib.pbkdf2_hmac("sha256", b"", b"", 10**7)  # seconds, also on a fast machine
        print("closed", flush=True)
except KeyboardInterrupt as error:
    sys.exit(Failure.of(error).code)
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="interrupts are no signals")


def interrupted(body: str, *, json: bool = False) -> tuple[int, str, str, float]:
    """The code, the outputs, and the seconds until the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN.format(json=json) + body],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background has switched interrupts off.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    start = time.monotonic()
    out, err = process.communicate(timeout=20)
    return process.returncode, out, err, time.monotonic() - start


@pytest.mark.slow
@pytest.mark.parametrize("body", [DEAF, LOST])
def test_what_python_does_not_hear_is_left_within_a_second(body):
    code, out, err, seconds = interrupted(body)
    assert (code, out, err) == (130, "", "dynascope: interrupted.\n")
    assert seconds < 1.5  # on a machine that does other things too


@pytest.mark.slow
def test_for_a_machine_it_is_told_as_json():
    code, out, err, _ = interrupted(DEAF, json=True)
    assert (code, err) == (130, "")
    assert out.startswith('{"error": {"message": "interrupted."')


@pytest.mark.slow
def test_what_is_being_answered_is_not_cut_short():
    code, _, err, seconds = interrupted(ANSWERED)
    assert (code, err) == (130, "")
    assert seconds > 1


@pytest.mark.slow
def test_an_interrupt_that_became_another_error_is_still_one():
    code, out, _, _ = interrupted(TRANSLATED)
    assert (code, out) == (130, "interrupted.\n")


@pytest.mark.slow
def test_files_that_are_written_are_closed_first():
    code, out, _, seconds = interrupted(WRITING)
    # Python tells of it as soon as it can, which is before the file is closed; but nothing has ended the process.
    assert (code, out) == (130, "")
    assert seconds > 1
