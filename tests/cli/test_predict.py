"""The command that predicts, with the curve of a user's training beside the prediction."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import re

import numpy as np
import pandas as pd
import pytest
import user_training

from dynascope.cli.commands import main
from dynascope.comparison.verdict import HEADINGS

GIVEN = ("--network", "linear", "--scale", user_training.SCALE, "--width", 20)
RUN = ("--learning-rate", user_training.RATE, "--loss", "mse")


def predict(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["predict", *map(str, arguments)])
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two targets, as a table; the command centres them, and so are those of the training."""
    path = tmp_path_factory.mktemp("data") / "trees.npz"
    x, y = user_training.data()
    np.savez(path, x=x, y=y)
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A training on what the command reads, centred, from weights that it does not know."""
    x, y = (each - each.mean(axis=0) for each in user_training.data())
    draw = np.random.default_rng(3)
    w1, w2 = (user_training.SCALE * draw.normal(size=size) / 20**0.5 for size in ((4, 20), (20, 3)))
    losses = []
    for _ in range(1500):
        error = x @ w1 @ w2 - y
        losses.append(np.mean(error**2))
        slopes = x.T @ error @ w2.T, (x @ w1).T @ error
        w1, w2 = (w - user_training.RATE * 2 * each / error.size for w, each in zip((w1, w2), slopes, strict=True))
    path = tmp_path_factory.mktemp("run") / "run.csv"
    pd.DataFrame({"step": range(1500), "loss": losses}).to_csv(path, index=False)
    return path


def test_a_user_curve_is_judged_in_its_units(data, run, tmp_path):
    code, out, _ = predict(data, *GIVEN, "--curve", run, *RUN, "--out", tmp_path)
    assert code == 0
    assert "mean of (f(x) − y)²" in out
    assert HEADINGS["agree"] in out
    (page,) = tmp_path.glob("*.html")
    assert page.name.startswith("dynascope-trees-linear-scale=1e-05-width=")
    assert f"--curve</span> <span>{run}</span>" in page.read_text("utf-8")


@pytest.mark.parametrize(("rate", "length", "code"), [(0.02, 1500, 0), (0.04, 1500, 1), (0.02, 200, 4)])
def test_the_exit_code_is_the_verdict_and_the_answer_says_the_units(data, run, tmp_path, rate, length, code):
    short = tmp_path / "short.csv"
    pd.read_csv(run)[:length].to_csv(short, index=False)
    options = ("--learning-rate", rate, "--loss", "mse", "--json", "--out", tmp_path)
    found, out, _ = predict(data, *GIVEN, "--curve", short, *options)
    answer = json.loads(out)
    assert found == code
    assert answer["check"]["verdict"] == {0: "agree", 1: "disagree", 4: "undecided"}[code]
    assert answer["convention"].endswith(f"time = steps of learning rate {rate:g}")
    if code == 0:
        jump, seen = answer["jumps"][0], answer["check"]["jumps"][0]
        assert jump["time"] == pytest.approx(seen["time"], rel=0.1)
        assert answer["initial_loss"] == pytest.approx(pd.read_csv(run)["loss"][0])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--loss", "mse"), "loss is mse, but neither a curve"),
        (("--curve", "RUN"), "definition of the loss is missing"),
        (("--curve", "RUN", "--loss", "mse"), "learning rate is missing"),
        (("--curve", "nowhere.csv", *RUN), "does not exist"),
        (("--curve", "RUN", *RUN, "--check"), "--check cannot be combined with --curve"),
        (("--curve", "RUN", *RUN, "--slope"), "--slope cannot be combined with --curve"),
        (("--curve", "RUN", *RUN, "--normalised"), "--normalised cannot be combined with --curve"),
        (("--batch-size", 3), "--batch-size is 3, but no learning rate"),
        (("--check", "--flow", "descent"), "flow is descent, but no learning rate"),
        (("--flow", "descent", "--learning-rate", 0.1), "add --check"),
        (("--momentum", 0.9), "momentum is 0.9, but no learning rate"),
        (("--curve", "RUN", *RUN, "--momentum", 1.5), "momentum is 1.5"),
        (("--check", "--flow", "descent", "--learning-rate", 0.1, "--momentum", 0.9), "without momentum"),
        (("--check", "--slope", "--flow", "descent", "--learning-rate", 0.1), "--slope applies only to gradient flow"),
        (("--learning-rate", 0.1, "--batch-size", 500), "--batch-size is 500"),
        (("--minutes", 0), "minutes is 0"),
        (("--seeds", 0), "seeds is 0"),
        (("--smallest-jump", -1), "--smallest-jump is -1"),
        (("--curve", "RUN", "--learning-rate", 0.1, "--loss", "rmse"), "rmse"),
    ],
)
def test_bad_curves_are_refused_before_anything_is_computed(data, run, tmp_path, options, said):
    options = [run if each == "RUN" else each for each in options]
    code, out, err = predict(data, *GIVEN, *options, "--out", tmp_path)
    assert code == 2
    assert not out
    assert said in " ".join(err.split())
    assert not any(tmp_path.iterdir())


def test_a_curve_has_a_scale(data, run, tmp_path):
    code, _, err = predict(data, "--curve", run, *RUN, "--out", tmp_path)
    assert code == 2
    assert "--scale" in err


def test_a_learning_rate_tells_steps_and_epochs_in_the_table_the_page_and_the_answer(data, tmp_path):
    given = (*GIVEN, "--learning-rate", 0.02, "--loss", "mse", "--batch-size", 10, "--out", tmp_path)
    _, out, _ = predict(data, *given, "--json")
    answer = json.loads(out)
    samples, targets = user_training.data()[1].shape
    for jump in answer["jumps"]:
        # The mean over outputs, without ½: a step of the rate moves our time by 2/c of it.
        assert jump["step"] == pytest.approx(jump["time"] * targets / (2 * 0.02))
        assert jump["epoch"] == pytest.approx(jump["step"] * 10 / samples)
    _, out, _ = predict(data, *given)
    step = f"{answer['jumps'][0]['step']:.0f}"
    assert any(step in line.split() for line in out.splitlines())
    assert step in next(tmp_path.glob("*run-2.html")).read_text("utf-8")


def test_a_check_by_descent_is_told_in_its_steps_and_in_its_loss(data, tmp_path):
    given = (*GIVEN, *RUN, "--check", "--flow", "descent", "--json", "--out", tmp_path)
    code, out, _ = predict(data, *given)
    answer = json.loads(out)
    assert (code, answer["check"]["verdict"]) == (0, "agree")
    assert answer["convention"].endswith("time = steps of learning rate 0.02")
    assert answer["jumps"][0]["time"] == pytest.approx(answer["jumps"][0]["step"])
    assert answer["jumps"][0]["time"] == pytest.approx(answer["check"]["jumps"][0]["time"], rel=0.05)


@pytest.mark.slow
def test_a_rate_that_diverges_is_refused_with_one_that_does_not(data, tmp_path):
    given = ("--network", "linear", "--scale", 1e-3, "--check", "--flow", "descent", "--out", tmp_path)
    code, _, err = predict(data, *given, "--learning-rate", 1.0)
    assert code == 3
    (largest,) = re.findall(r"below ([\d.]+\d)", err)
    assert predict(data, *given, "--learning-rate", 0.8 * float(largest))[0] in (0, 4)


def test_a_full_disk_leaves_the_prediction_to_be_told(data, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("dynascope.results.save", refuse)
    given = (*GIVEN, "--check", "--out", tmp_path)
    code, out, err = predict(data, *given)
    assert code == 2
    assert "predicted" in out
    assert "disk is full" in err
    answer = json.loads(predict(data, *given, "--json")[1])
    assert answer["jumps"]
    assert answer["record"] is None
    assert answer["error"]["argument"] == "out"


def test_small_jumps_are_gathered_in_a_line_of_the_table_and_the_page_and_listed_in_the_answer(data, tmp_path):
    given = (*GIVEN, "--smallest-jump", 0.4, "--out", tmp_path)
    jumps = json.loads(predict(data, *given, "--json")[1])["jumps"]
    drops = [(jump["loss_before"] - jump["loss_after"]) / jumps[0]["loss_before"] for jump in jumps]
    small = [drop for drop in drops if drop < 0.4]
    assert 1 < len(small) < len(jumps)
    told = rf"{len(small)} [^.]* {100 * sum(small):.2g} %"
    assert re.search(told, predict(data, *given)[1])
    page = next(tmp_path.glob("*run-2.html")).read_text("utf-8")
    assert re.search(told, page)
    assert page.count('<th scope="row" class="place">') == len(jumps) - len(small)


def test_draws_of_the_weights_are_told_in_the_table_the_page_and_the_answer(data, tmp_path):
    given = (*GIVEN, "--seeds", 2, "--out", tmp_path)
    told = json.loads(predict(data, *given, "--json")[1])["seeds"]
    assert told["count"] == 2
    first = told["jumps"][0]
    assert first["seen"] == 2
    assert first["time"]["earliest"] <= first["time"]["median"] <= first["time"]["latest"]
    assert sum(first["learned"].values()) == 2
    assert len(told["curve"]["low"]) == len(told["curve"]["high"])
    assert "2 draws" in predict(data, *given)[1]
    assert "2 draws" in next(tmp_path.glob("*run-2.html")).read_text("utf-8")


def test_user_weights_are_taken_in_place_of_a_scale(tmp_path):
    x, y = (each - each.mean(axis=0) for each in user_training.data())
    np.savez(tmp_path / "trees.npz", x=x, y=y)
    first, second = (user_training.SCALE * each for each in user_training.start())
    np.savez(tmp_path / "start.npz", W1=first, W2=second)
    w1, w2, rows = first, second, []
    for step in range(1200):
        error, rate = x @ w1 @ w2 - y, user_training.RATE * (2 if step < 200 else 1)
        rows.append((step, np.mean(error**2), rate))
        slopes = x.T @ error @ w2.T, (x @ w1).T @ error
        w1, w2 = (w - rate * 2 * each / error.size for w, each in zip((w1, w2), slopes, strict=True))
    pd.DataFrame(rows, columns=["step", "loss", "learning_rate"])[::5].to_csv(tmp_path / "run.csv", index=False)
    given = (tmp_path / "trees.npz", "--weights", tmp_path / "start.npz", "--out", tmp_path / "out")
    code, out, _ = predict(*given, "--curve", tmp_path / "run.csv", "--loss", "mse", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["scale"] == pytest.approx(user_training.SCALE, rel=0.2)
    assert answer["convention"].endswith("sum of learning rates")
    assert not any("initial weights of your run are unknown" in warning for warning in answer["warnings"])
    code, _, err = predict(*given, "--width", 9)
    assert (code, "width is 9, but start.npz already determines the weights" in err) == (2, True)


@pytest.mark.parametrize(
    ("options", "argument", "said"),
    [
        (("--network", "diagonal"), "network", "network is 'diagonal', but --weights contains W1 and W2"),
        (("--network", "relu"), "weights", "nowhere.npz does not exist: give the path of an .npz file"),
    ],
)
def test_weights_that_no_file_holds_are_refused_by_the_option(data, tmp_path, options, argument, said):
    code, out, _ = predict(data, *options, "--weights", tmp_path / "nowhere.npz", "--json", "--out", tmp_path)
    told = json.loads(out)["error"]
    assert (code, told["argument"]) == (2, argument)
    assert said in told["message"]
