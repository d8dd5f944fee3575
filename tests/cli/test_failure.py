from __future__ import annotations

import pytest

from dynascope.cli import commands
from dynascope.cli.failure import FAILURES, Failure, with_options
from dynascope.errors import DivergenceError, InputError


@pytest.mark.parametrize(
    ("error", "code", "value"),
    [
        (InputError("width is 0", argument="width", value=0, remedy="choose more"), 2, 0),
        (InputError("it is odd", argument="x", value=(1, 2), remedy="choose another"), 2, "(1, 2)"),
        (DivergenceError("it exploded", time=float("inf"), remedy="slow down"), 3, None),
        (OSError(28, "No space left on device", "/there"), 2, "/there"),
        (KeyboardInterrupt(), 130, None),
        (IndexError("list index out of range\nand more"), 3, "IndexError list index out of range"),
    ],
)
def test_each_failure_has_a_code_a_sentence_and_a_plain_value(error, code, value, capsys):
    assert isinstance(error, FAILURES)
    failure = Failure.of(error)
    assert failure.code == code
    assert failure.answer["value"] == value
    assert failure.answer["remedy"] in failure.message or code == 130
    failure.print("what came before: ")
    said = capsys.readouterr()
    assert said.err == f"dynascope: what came before: {failure.message}\n"
    assert said.out == ""


def test_a_full_disk_is_named_as_such():
    message = Failure.of(OSError(28, "No space left on device", "/there")).message
    assert "No space left on device" in message


def test_a_file_that_may_not_be_read_is_not_blamed_on_the_output():
    failure = Failure.of(PermissionError(13, "Permission denied", "/there/weights.npz"))
    assert failure.message.startswith("/there/weights.npz cannot be read or written (Permission denied)")
    assert failure.argument is None


def test_an_option_that_was_given_is_named_as_it_was_typed():
    failure = Failure.of(InputError("learning_rate is 0", argument="learning_rate", value=0, remedy="choose more"))
    assert failure.in_options(["predict", "--learning-rate=0"]).message == "--learning-rate is 0: choose more."
    assert failure.in_options(["predict", "--rate=0"]) == failure


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('set `missing` to "drop", or use `drop`', 'set --missing to "drop", or use --drop'),
        ("choose loss='mse', or one of 'sum'", "choose --loss mse, or one of 'sum'"),
        ("give learning_rate= as one number", "give --learning-rate as one number"),
        ('leave it out with `drop=""`', 'leave it out with --drop ""'),
        ("give scale=0.5.", "give --scale 0.5."),
        ("give --loss=mse, and dropping `width`, loss = mean", "give --loss=mse, and dropping `width`, loss = mean"),
    ],
)
def test_arguments_in_a_message_become_options(text, expected):
    assert with_options(text, ["missing", "drop", "loss", "learning_rate", "scale"]) == expected


def test_an_error_of_a_command_names_its_options(tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_text("a,b\n1,2\n3,5\n4,4\n")
    assert commands.main(["predict", str(table)]) == 2
    assert "choose --target from 'a', 'b'" in capsys.readouterr().err


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_what_is_not_foreseen_ends_in_one_line_and_code_three(monkeypatch, capsys, json):
    def fail(*_):
        raise IndexError("list index out of range")

    monkeypatch.setattr(commands, "_command", fail)
    assert commands.main(["list", *json]) == 3
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    assert "IndexError list index out of range" in said.out + said.err
    assert commands.main(["list", "--traceback", *json]) == 3
    assert "Traceback (most recent call last)" in capsys.readouterr().err
