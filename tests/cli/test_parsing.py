from __future__ import annotations

import json

import pytest

from dynascope.cli.commands import main


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["lits"], "did you mean list?"),
        (["run", "linear-stairs"], "did you mean linear-staircase?"),
        (["run", "linear-staircase", "--wdith", "3"], "did you mean --width?"),
        (["run", "linear-staircase", "--wdith=3"], "has no option --wdith: did you mean --width?"),
        (["run", "layerwise-modes", "--inital_strength", "3"], "did you mean --initial-strength?"),
        (["predict", "--netwrok", "linear"], "did you mean --network?"),
        (["predict", "x.npz", "--network", "linaer"], "--network is 'linaer' (did you mean linear?), but must be one"),
        (["predict", "x.npz", "--network", "ReLU"], "--network is 'ReLU' (did you mean relu?), but must be one"),
        (["predict", "x.npz", "--loss", "l1"], "must be one of half_mse, mse, squared, squared_norm, sum: see"),
        (["predict"], "DATA is missing: see dynascope predict --help"),
        (["predict", "x.npz", "--scale", "small"], "--scale is 'small', which is not a number: see dynascope predict"),
        (["predict", "x.npz", "--minutes", "ten"], "--minutes is 'ten', which is not a number: see"),
        (["predict", "x.npz", "--seed", "1.5"], "--seed is '1.5', which is not an integer: see"),
        (["predict", "x.npz", "--batch-size", "all"], "--batch-size is 'all', which is not an integer: see"),
        (["predict", "x.npz", "--seed"], "--seed has no value: see"),
        (["run"], "STUDY is missing: see dynascope run --help"),
        (["list", "--lnog"], "did you mean --long?"),
        (["list", "gorkking"], "did you mean grokking?"),
        (["--verison"], "did you mean --version?"),
        ([], "choose list, predict, which, run, sweep, diagnose, report or watch"),
    ],
)
def test_a_mistyped_word_is_answered_by_the_one_that_was_meant(capsys, arguments, meant):
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("dynascope: ")
    assert said.err.count("\n") == 1
    assert meant in said.err


def test_a_mistyped_study_is_told_to_machines(capsys):
    assert main(["run", "linear-stairs", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["argument"], error["value"]) == ("study", "linear-stairs")
    assert "linear-staircase" in error["remedy"]


@pytest.mark.parametrize("width", ["80", "100"])
@pytest.mark.parametrize("command", ["", "list", "predict", "run", "run deep-saddles", "report"])
def test_help_is_no_wider_than_the_terminal(capsys, monkeypatch, command, width):
    monkeypatch.setenv("COLUMNS", width)
    assert main([*command.split(), "--help"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: dynascope {command}".rstrip())
    assert max(map(len, said.splitlines())) <= int(width)
    assert "\x1b" not in said
