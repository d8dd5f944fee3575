from __future__ import annotations

import pytest

from dynascope.cli.failure import FORESEEN, Failure
from dynascope.errors import DivergenceError, InputError


@pytest.mark.parametrize(
    ("error", "code", "value"),
    [
        (InputError("width is 0", argument="width", value=0, remedy="choose more"), 2, 0),
        (InputError("it is odd", argument="x", value=(1, 2), remedy="choose another"), 2, "(1, 2)"),
        (DivergenceError("it exploded", time=float("inf"), remedy="slow down"), 3, None),
        (OSError(28, "No space left on device", "/there"), 2, "/there"),
        (KeyboardInterrupt(), 130, None),
    ],
)
def test_each_failure_has_a_code_a_sentence_and_a_plain_value(error, code, value, capsys):
    assert isinstance(error, FORESEEN)
    failure = Failure.of(error)
    assert failure.code == code
    assert failure.answer["value"] == value
    assert failure.answer["remedy"] in failure.message or code == 130
    failure.print("what came before: ")
    said = capsys.readouterr()
    assert said.err == f"dynascope: what came before: {failure.message}\n"
    assert said.out == ""
