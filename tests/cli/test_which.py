from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dynascope import __version__
from dynascope.cli.commands import main
from dynascope.comparison.verdict import HEADINGS
from dynascope.networks import balanced_linear


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table of two inputs and a quantity, in the folder where the command is called."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(30, 3)) * [10.0, 0.1, 1.0]
    path = tmp_path / "trial.csv"
    path.write_text("\n".join(["age,dose,effect", *(",".join(f"{x:.6f}" for x in row) for row in rows)]))
    return "trial.csv"


def test_what_applies_comes_with_the_command_and_what_does_not_with_the_reason(table, capsys):
    assert main(["which", table, "--target", "effect", "--network", "linear"]) == 0
    said = capsys.readouterr().out
    assert "$ dynascope predict trial.csv --target effect --network linear --theory" in said
    assert "! assumes white inputs (" in said
    copied = [line for line in said.splitlines() if line.startswith("    $ ")]
    assert all(line.endswith(("--theory linear-staircase", "--theory alternating-flow")) for line in copied)  # whole
    assert "\x1b" not in said


def test_what_is_wrong_for_all_is_said_once(table, capsys):
    options = ["--learning-rate", "0.1", "--batch-size", "5"]
    assert main(["which", table, "--target", "effect", "--network", "relu", *options]) == 0
    said = capsys.readouterr().out
    assert said.count("full batches (measured 0.833") == 1


def test_if_nothing_applies_the_calls_that_measure_come_last(table, capsys):
    assert main(["which", table, "--target", "effect", "--network", "relu", "--scale", "1"]) == 0
    said = capsys.readouterr().out
    assert "No theory applies." in said
    assert said.index("as shown at the end") < said.index(
        "To train and measure the network without a theory, use Python:\n\n    observe("
    )


def test_machines_get_one_object_with_every_number(table, capsys):
    assert main(["which", table, "--target", "effect", "--network", "diagonal", "--scale", "0.05", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["network"], answer["scale"]) == ("diagonal", 0.05)
    first = answer["theories"][0]
    assert (first["theory"], first["status"], first["exact"]) == ("diagonal-staircase", "almost", False)
    small = {each["name"]: each for each in first["assumptions"]}["small initialisation"]
    assert (small["value"], small["limit"], small["holds"], small["almost_holds"]) == (0.05, 0.01, False, True)
    assert (answer["learning_rate"], answer["batch_size"], answer["normalised"]) == (None, None, False)
    assert answer["version"] == __version__
    assert first["call"] == 'predict(task, network, scale=0.05, theory="diagonal-staircase")'
    modes = {each["theory"]: each for each in answer["theories"]}["independent-modes"]
    assert modes["kind"] == "exact"
    assert modes["more"]["theory.scalar_networks.emergence_time"]
    assert all(math.isfinite(each["value"]) for row in answer["theories"] for each in row["assumptions"])


def test_what_is_not_measured_is_null_for_machines(table, capsys):
    options = ["--target", "effect", "--network", "relu", "--learning-rate", "0.01"]
    assert main(["which", table, *options, "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["theories"][0]
    steps = {each["name"]: each for each in first["assumptions"]}["small steps"]
    assert first["status"] == "unknown"
    assert (steps["value"], steps["holds"], steps["almost_holds"]) == (None, None, None)


def test_a_theory_of_the_list_predicts_and_is_checked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    x = np.repeat([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], 2, axis=0)
    np.savez("white.npz", x=x, y=x @ [[2.0], [0.5]])
    network = balanced_linear(2, 3, 1, scale=0.3)
    np.savez("start.npz", W1=network.first, W2=network.second)
    said = ["white.npz", "--network", "linear", "--weights", "start.npz", "--theory", "balanced"]
    assert main(["predict", *said, "--check"]) == 0
    out = capsys.readouterr().out
    assert "50 %" in out
    assert HEADINGS["agree"] in out
    assert main(["predict", *said, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["jumps"] == []
    assert answer["curve"]["loss"][0] == pytest.approx(answer["initial_loss"])
    assert main(["predict", *said, "--slope"]) == 2
    assert "slope applies to jumps" in capsys.readouterr().err


def test_a_loss_over_time_is_told_in_steps_and_epochs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    x = np.repeat([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], 2, axis=0)
    np.savez("white.npz", x=x, y=x @ [[2.0], [0.5]])
    network = balanced_linear(2, 3, 1, scale=0.3)
    np.savez("start.npz", W1=network.first, W2=network.second)
    said = ["predict", "white.npz", "--network", "linear", "--weights", "start.npz", "--theory", "balanced"]
    steps = ["--learning-rate", "0.1", "--batch-size", "2"]
    assert main([*said, *steps, "--json"]) == 0
    curve = json.loads(capsys.readouterr().out)["curve"]
    # A step is a tenth of a unit of time, and an epoch four steps of two of eight samples.
    np.testing.assert_allclose(curve["step"], np.divide(curve["time"], 0.1))
    np.testing.assert_allclose(curve["epoch"], np.divide(curve["step"], 4))
    assert main([*said, *steps]) == 0
    out = capsys.readouterr().out
    assert "learning rate 0.1" in out
    assert max(map(len, out.partition("Record:")[0].splitlines())) <= 80


@pytest.mark.slow
def test_steps_judge_a_loss_that_is_exact_as_closely_as_they_can_follow_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    x = np.repeat([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], 2, axis=0)
    y = x @ [[2.0], [0.5]]
    np.savez("white.npz", x=x, y=y)
    network = balanced_linear(2, 3, 1, scale=0.3)
    np.savez("start.npz", W1=network.first, W2=network.second)
    first, second, losses = network.first, network.second, []
    for _ in range(2000):
        error = x @ first @ second - y
        losses.append((error**2).mean() / 2)
        slope = x.T @ error / len(x)
        first, second = first - 0.002 * slope @ second.T, second - 0.002 * first.T @ slope
    (tmp_path / "run.csv").write_text("step,loss\n" + "\n".join(f"{i},{loss}" for i, loss in enumerate(losses)))
    said = ["predict", "white.npz", "--network", "linear", "--weights", "start.npz", "--theory", "balanced"]
    by_curve = ["--curve", "run.csv", "--loss", "squared"]
    assert main([*said, "--learning-rate", "0.002", *by_curve]) == 0
    assert main([*said, "--learning-rate", "0.004", *by_curve]) == 1
    descends = [*said, "--learning-rate", "0.002", "--flow", "descent", "--check"]
    assert main(descends) == 0
    assert main([*descends, "--batch-size", "2"]) == 2
    assert "omit --batch-size" in capsys.readouterr().err


def test_a_theory_that_does_not_hold_is_refused_by_the_name_of_what_is_violated(table, capsys):
    code = main(["predict", table, "--target", "effect", "--network", "linear", "--theory", "balanced"])
    assert code == 2
    assert "balanced layers" in capsys.readouterr().err


@pytest.mark.parametrize(("options", "label"), [([], "rich"), (["--scale", "1e3"], "lazy")])
def test_the_last_paragraph_tells_lazy_from_rich(table, capsys, options, label):
    command = ["which", table, "--target", "effect", "--network", "relu", *options]
    assert main(command) == 0
    assert f"Lazy or rich? Training is {label}." in " ".join(capsys.readouterr().out.split("\n\n")[-1].split())
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["regime"]["label"] == label
    assert main([*command, "--normalised", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["regime"] is None
