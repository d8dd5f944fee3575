from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.cli.commands import main
from dynascope.comparison import compare
from dynascope.comparison.verdict import HEADINGS
from dynascope.errors import DivergenceError, InputError
from dynascope.results import Prediction, make_record, store
from dynascope.studies import find_studies, find_study
from dynascope.tasks import digits

PREDICTION = {
    "theory",
    "theory_name",
    "theory_choice",
    "data",
    "network",
    "scale",
    "convention",
    "initial_loss",
    "jumps",
    "warnings",
    "curve",
    "check",
    "seconds",
    "record",
    "version",
}
JUMP = {"jump", "accelerated_time", "time", "loss_before", "loss_after", "learned", "slow", "reason"}
CHECK = {"jumps", "judged", "of", "agreement", "checks", "verdict", "verdict_sentence", "share_of_fall"}
STUDY = {
    *("study", "parameters", "agreement", "checks", "claims", "undecided", "verdict", "verdict_sentence"),
    *("share_of_fall", "seconds", "record", "version", "warnings"),
}
SLIPS = [
    [],
    ["frobnicate"],
    ["predict"],
    ["predict", "x.npz", "--frob"],
    ["predict", "x.npz", "--scale", "small"],
    ["predict", "x.npz", "--network", "convolutional"],
    ["run"],
    ["run", "--seed", "1", "linear-staircase"],
    ["run", "layerwise-modes", "--frob", "1"],
    ["report"],
    ["watch"],
]
WORDS = [
    *("predict", "run", "list", "report", "--json", "--help", "--check", "--frob", "--", "-1", "", " ", "é", "nan"),
    *("nowhere.npz", "nowhere.zarr.zip", "--scale", "--network", "linear", "--target", "--only", "--out"),
]


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def answer(self):
        """The one JSON value on standard output."""
        assert self.out.count("\n") == 1
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def dynascope(*arguments: object) -> Said:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Said(code, out.getvalue(), err.getvalue())


def in_a_process(*arguments: object, **environment: str) -> Said:
    done = subprocess.run(
        [sys.executable, "-m", "dynascope", *map(str, arguments)],
        capture_output=True,
        env={**os.environ, **environment},
    )
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


def with_moments(joint: np.ndarray) -> np.ndarray:
    """Samples whose mean is exactly zero and whose second moment is `joint`, up to rounding."""
    size = len(joint)
    axes = np.sqrt(size) * np.vstack([np.eye(size), -np.eye(size)])
    return axes @ np.linalg.cholesky(joint).T


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def data(folder):
    """Two targets on three inputs, with strengths 2 and 1/2 so that two jumps stand apart."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(30, 3))
    x = np.linalg.qr(x - x.mean(axis=0))[0] * np.sqrt(30)
    np.savez(folder / "trees.npz", x=x, y=x @ np.array([[2.0, 0.0], [0.0, 0.5], [0.0, 0.0]]))
    return folder / "trees.npz"


@pytest.fixture(scope="module")
def table(folder, data):
    """The same with named columns, as comma-separated values."""
    with np.load(data) as arrays:
        columns = dict(zip(["height", "girth", "age"], arrays["x"].T, strict=True))
        columns |= dict(zip(["yield", "loss <b>"], arrays["y"].T, strict=True))
    pd.DataFrame(columns).to_csv(folder / "orchard.csv", index=False)
    return folder / "orchard.csv"


@pytest.fixture(scope="module")
def predicted(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("predicted")
    return dynascope("predict", data, "--json", "--out", out), out


@pytest.fixture(scope="module")
def checked(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("checked")
    return dynascope("predict", data, "--check", "--json", "--out", out), out


# What machines read.


@pytest.mark.slow
def test_a_prediction_is_one_object_with_the_documented_keys(predicted):
    said, out = predicted
    answer = said.answer
    assert said.code == 0
    assert answer.keys() == PREDICTION
    assert all(jump.keys() == JUMP for jump in answer["jumps"])
    assert answer["check"] is None
    assert answer["warnings"] == []
    assert (answer["network"], answer["scale"]) == ("linear", 1e-8)
    assert Path(answer["record"]) == out / "dynascope-trees-linear.zarr.zip"


def test_a_prediction_is_right_where_the_answer_is_known(predicted):
    # The inputs are whitened, so the strengths are singular values: times 1/σ, drops σ²/2.
    answer = predicted[0].answer
    assert answer["initial_loss"] == pytest.approx(2.125, rel=1e-12)
    assert [jump["accelerated_time"] for jump in answer["jumps"]] == pytest.approx([0.5, 2.0], rel=1e-10)
    assert [jump["loss_after"] for jump in answer["jumps"]] == pytest.approx([0.125, 0.0], abs=1e-12)
    assert [jump["learned"]["rank"] for jump in answer["jumps"]] == [1, 2]


@pytest.mark.slow
def test_a_check_adds_what_was_observed(checked):
    said, _ = checked
    check = said.answer["check"]
    assert said.code == 0
    assert check.keys() == CHECK
    assert check["verdict"] == "agree"
    assert [jump.keys() for jump in check["jumps"]] == [
        {"jump", "time", "accelerated_time", "loss_before", "loss_after", "status"}
    ] * 2
    assert {"initial_loss", "jump_time", "level", "missing_jumps", "extra_jumps"} == check["agreement"].keys()
    # The theory propagates the actual start, and these modes do not couple.
    times = [jump["time"] for jump in said.answer["jumps"]]
    assert [jump["time"] for jump in check["jumps"]] == pytest.approx(times, rel=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["--check", "--slope"], ["--slope"]])
def test_a_check_of_slopes_adds_them_to_the_jumps(data, tmp_path, flags):
    said = dynascope("predict", data, *flags, "--json", "--out", tmp_path)
    check = said.answer["check"]
    assert said.code == 0
    # Between two small scales the offset of a time cancels; what is left is exponentially small.
    assert [jump["slope"] for jump in check["jumps"]] == pytest.approx([0.5, 2.0], rel=1e-4)
    assert check["agreement"]["slope"]["agrees"] is True


@pytest.fixture(scope="module")
def relu(folder, tmp_path_factory):
    # As many samples, features and neurons as where the theory of ReLU networks is tested, so that programs serve both.
    np.savez(folder / "four.npz", x=np.diag([1.0, 1.2, 0.9, 1.1]), y=np.array([1.5, 1.0, -0.8, -0.9]))
    flags = ["--width", 12, "--check", "--json", "--out", tmp_path_factory.mktemp("relu")]
    return dynascope("predict", folder / "four.npz", "--network", "relu", *flags)


@pytest.fixture(scope="module")
def quadratic(data, tmp_path_factory):
    flags = ["--width", 8, "--normalised", "--scale", "1e-6", "--jumps", 1]
    out = tmp_path_factory.mktemp("quadratic")
    return dynascope("predict", data, "--network", "quadratic", *flags, "--json", "--out", out)


@pytest.fixture(scope="module")
def attention(data, tmp_path_factory):
    flags = ["--width", 4, "--context", 10]
    out = tmp_path_factory.mktemp("attention")
    return dynascope("predict", data, "--network", "attention", *flags, "--json", "--out", out)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "most"),
    [
        pytest.param("relu", 5, marks=pytest.mark.slow),  # five at most if not said
        pytest.param("quadratic", 1, marks=pytest.mark.slow),
        ("attention", 5),
    ],
)
def test_other_networks_are_predicted_too(request, network, most):
    said = request.getfixturevalue(network)
    assert said.code == 0
    jumps = said.answer["jumps"]
    assert said.answer["network"] == network
    assert 1 <= len(jumps) <= most
    levels = [said.answer["initial_loss"], *(jump["loss_after"] for jump in jumps)]
    assert levels == sorted(levels, reverse=True)
    assert [jump["time"] for jump in jumps] == sorted(jump["time"] for jump in jumps)
    tree = store.load(said.answer["record"])
    assert tree.predicted["input_feature"].dims == ("jump", "feature")


@pytest.mark.slow
def test_a_check_of_a_relu_network_trains_it(relu):
    first = relu.answer["check"]["jumps"][0]
    # Its plateau is the initial loss, so nothing but the offset of order 1/log(1/scale) parts the times.
    assert first["time"] == pytest.approx(relu.answer["jumps"][0]["time"], rel=2.2 / np.log(1e8))


def as_flags(fields):
    flags = []
    for field, value in fields.items():
        flags += [f"--{field.replace('_', '-')}", *(value if isinstance(value, list | tuple) else [value])]
    return flags


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(find_studies()))
def test_each_study_takes_its_fields_by_flags(name, monkeypatch, tmp_path):
    given = []

    def run(self):
        given.append(self)
        raise InputError("it was only looked at", argument="name", remedy="leave it")

    kind = find_studies()[name]
    monkeypatch.setattr(kind, "run", run)
    assert dynascope("run", name, *as_flags(kind.tiny), "--out", tmp_path).code == 2
    assert given == [kind(**kind.tiny)]


# One whose curves run over time, one that is a staircase, one with a list among its fields.
@pytest.fixture(scope="module", params=["diagonal-staircase", "layerwise-modes", "scaling-compute"])
def study(request, tmp_path_factory):
    """A study with its tiny fields, set by flags."""
    name, out = request.param, tmp_path_factory.mktemp("study")
    fields = find_studies()[name].tiny
    return name, fields, dynascope("run", name, *as_flags(fields), "--json", "--out", out), out


@pytest.mark.slow
def test_a_study_is_one_object_with_the_documented_keys(study):
    name, fields, said, out = study
    answer = said.answer
    assert said.code == 0
    assert answer.keys() == STUDY
    assert answer["study"] == name
    assert answer["parameters"].items() >= fields.items()
    assert answer["verdict"] == "agree"
    assert all(
        each.keys() == {"error", "tolerance", "agrees", "reason"} and each["agrees"]
        for each in answer["agreement"].values()
    )
    assert Path(answer["record"]).parent == out


@pytest.mark.slow
def test_a_study_writes_its_page_and_its_record(study):
    name, _, said, out = study
    written = Path(said.answer["record"])
    assert {path.name for path in out.iterdir()} == {written.name, f"{written.name.removesuffix('.zarr.zip')}.html"}
    assert written.name.startswith(f"dynascope-{name}-")
    assert len(written.name) < 60
    assert store.load(written).verdict.outcome == "agree"


# Exit codes.


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["--json"], []])
def test_a_study_that_disagrees_says_so_by_exit_code_one(monkeypatch, tmp_path, flags):
    modes = find_studies()["layerwise-modes"]
    predict = modes.predicted
    monkeypatch.setattr(modes, "predicted", lambda self: predict(self) * 1.05)
    # Arithmetic drops attributes, as a careless study might.
    monkeypatch.setattr(modes, "with_tolerances", lambda self, record: record.assign_attrs(predict(self).attrs))
    tiny = ["--modes", 2, "--samples", 6, "--times", 40, "--initial-strength", 0.01]
    said = dynascope("run", "layerwise-modes", *tiny, *flags, "--out", tmp_path)
    assert said.code == 1
    if flags:
        assert said.answer["verdict"] == "disagree"
        assert said.answer["agreement"]["mode_strength"]["agrees"] is False
    else:
        assert HEADINGS["disagree"] in said.out
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.slow
def test_a_prediction_that_disagrees_says_so_by_exit_code_one(monkeypatch, data, tmp_path):
    from dynascope import prediction

    def late(*arguments, **options):
        record = predict(*arguments, **options).record
        return Prediction.of(record.assign(jump_time=1.5 * record["jump_time"]))

    predict = prediction.predict
    monkeypatch.setattr(prediction, "predict", late)
    said = dynascope("predict", data, "--check", "--json", "--out", tmp_path)
    assert said.code == 1
    assert said.answer["check"]["verdict"] == "disagree"
    assert said.answer["check"]["agreement"]["level"]["agrees"] is True


@pytest.mark.parametrize(
    ("trouble", "message", "code"),
    [
        (DivergenceError("the loss is inf", time=float("nan"), remedy="lower the rate"), "the loss is inf", 3),
        (KeyboardInterrupt(), "interrupted", 130),
    ],
)
def test_a_check_that_fails_leaves_the_prediction_and_says_so(monkeypatch, data, tmp_path, trouble, message, code):
    def fail(*_, **__):
        assert {path.suffix for path in tmp_path.iterdir()} == {".html", ".zip"}
        raise trouble

    monkeypatch.setattr("dynascope.observe", fail)
    said = dynascope("predict", data, "--check", "--json", "--out", tmp_path)
    assert said.code == code
    assert said.answer.keys() == PREDICTION | {"error"}
    assert said.answer["error"].keys() == {"message", "argument", "value", "remedy"}
    assert message in said.answer["error"]["message"]
    assert said.answer["check"] is None
    assert store.load(said.answer["record"]).predicted is not None
    said = dynascope("predict", data, "--check", "--out", tmp_path)
    assert said.code == code
    assert message in said.err.splitlines()[-1]
    (page,) = tmp_path.glob("*run-2.html")
    assert said.out.splitlines()[-1] == f"Page: {page}"
    assert "</html>" in page.read_text("utf-8")


def test_a_check_that_is_out_of_time_is_judged_on_what_was_due(data, tmp_path):
    said = dynascope("predict", data, "--check", "--minutes", 1e-9, "--json", "--out", tmp_path)
    assert said.code == 4
    assert {jump["status"] for jump in said.answer["check"]["jumps"]} == {"not due"}
    assert any("stopped at t = " in warning for warning in said.answer["warnings"])
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("arguments", [["--help"], ["predict", "--help"], ["run", "linear-staircase", "--help"]])
def test_help_is_no_failure_and_names_nothing_of_python(arguments):
    said = dynascope(*arguments)
    assert said.code == 0
    assert said.err == ""
    assert "usage: dynascope" in said.out
    assert "Union" not in said.out
    assert "functools" not in said.out


@pytest.mark.slow
def test_every_field_of_a_study_is_a_flag_with_help():
    for name, study_type in find_studies().items():
        said = dynascope("run", name, "--help").out
        assert " ".join(study_type.reference.claim.split()) in " ".join(said.split())
        assert all(f"--{field.name.replace('_', '-')} " in said for field in dataclasses.fields(study_type))


def test_the_version_is_told():
    said = dynascope("--version")
    assert (said.code, said.out) == (0, f"dynascope {dynascope_version()}\n")
    assert "--version" in dynascope("--help").out


def dynascope_version() -> str:
    import importlib.metadata

    return importlib.metadata.version("dynascope")


# Bad input.


@pytest.fixture(scope="module")
def bad(folder, data, table):
    """Files that cannot be used, by what is wrong with them."""
    with np.load(data) as arrays:
        x, y = arrays["x"], arrays["y"]
    gap = x.copy()
    gap[3, 1] = np.nan
    np.savez(folder / "gap.npz", x=gap, y=y)
    np.savez(folder / "single.npz", x=x[:1], y=y[:1])
    np.savez(folder / "constant.npz", x=x, y=np.ones(30))
    np.savez(folder / "still.npz", x=np.ones((30, 3)), y=y)
    np.savez(folder / "short.npz", x=x, y=y[:20])
    np.savez(folder / "half.npz", x=x)
    square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    np.savez(folder / "parity.npz", x=square, y=square.prod(axis=1))
    (folder / "dates.csv").write_text("a,b,y\n1,2020-01-02,2\n2,2020-01-03,4\n3,2020-01-02,5\n")
    (folder / "broken.npz").write_bytes(b"PK not really")
    (folder / "notes.doc").write_text("x")
    return {path.name: path for path in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["predict", "missing.npz"], "there is no file"),
        (["predict", "notes.doc"], "unknown extension"),
        (["predict", "broken.npz"], "not an .npz archive"),
        (["predict", "half.npz"], "no array 'y'"),
        (["predict", "orchard.csv", "--target", "yeild"], "choose 'yield'"),
        (["predict", "orchard.csv"], "no target column"),
        (["predict", "trees.npz", "--target", "y1"], "no named columns"),
        (["predict", "dates.csv", "--target", "y"], "in text such as '2020-01-02' in the input 'b'"),
        (["predict", "gap.npz"], "1 row with missing or infinite values in 'x2'"),
        (["predict", "single.npz"], "1 sample"),
        (["predict", "constant.npz"], "the target y is constant"),
        (["predict", "still.npz"], "the input x is constant"),
        (["predict", "short.npz"], "x and y in short.npz have 30 and 20 samples"),
        (["predict", "parity.npz"], "pass targets that vary with the inputs"),
        (["predict", "trees.npz", "--scale", 1], "scale is 1.0"),
        (["predict", "trees.npz", "--scale", 3], "scale is 3.0"),
        (["predict", "trees.npz", "--scale", 0], "scale is 0.0"),
        (["predict", "trees.npz", "--scale", -1], "scale is -1.0"),
        (["predict", "trees.npz", "--scale", "nan"], "scale is nan"),
        (["predict", "trees.npz", "--scale", "inf"], "scale is inf"),
        (["predict", "trees.npz", "--width", 0], "width is 0"),
        (["predict", "trees.npz", "--seed", -1], "seed is -1"),
        (["predict", "trees.npz", "--only", "y3"], "the task has no target 'y3'"),
        (["predict", "trees.npz", "--network", "diagonal"], "select one target"),
        (["predict", "digits", "--target", "yield"], "the digits data have no named columns"),
        (["predict", "digits", "--drop", "yield"], "omit --drop"),
        (["predict", "orchard.csv", "--target", "yield", "--drop", "hight"], "choose 'height'"),
        (["predict", "trees.npz", "--raw", "--standardise"], "omit --raw or --standardise"),
        (["predict", "digits", "--classification", False], "omit --classification"),
        (["run", "linear-staircase", "--scale", 2], "scale is 2.0"),
        (["run", "linear-staircase", "--data", "gaussian", "--condition", 0], "condition is 0.0"),
        (["run", "linear-staircase", "--data", "gaussian", "--samples", 1], "samples is 1"),
        (["run", "linear-staircase", "--width", -2], "width is -2"),
        (["run", "diagonal-staircase", "--relevant", 11], "relevant is 11: choose an integer of at most inputs (10)"),
        (["run", "diagonal-staircase", "--noise", -1], "noise is -1.0"),
        (["run", "diagonal-staircase", "--seed", -1], "seed is -1"),
        (["run", "layerwise-modes", "--initial-strength", 2], "initial-strength is 2.0"),
        (["run", "layerwise-modes", "--times", 1], "times is 1"),
        (["run", "layerwise-modes", "--samples", 2], "samples is 2"),
    ],
)
def test_bad_input_is_answered_in_one_sentence_and_nothing_is_written(bad, folder, tmp_path, arguments, problem):
    command, name, *flags = arguments
    known = name == "digits" or command == "run"
    arguments = [command, name if known else bad.get(name, folder / name), *flags, "--out", tmp_path / "out"]
    said = dynascope(*arguments)
    *progress, sentence = said.err.splitlines()
    assert said.code == 2
    assert said.out == ""
    assert sentence.startswith("dynascope: ")
    assert sentence.endswith(".")
    assert problem in sentence
    assert all(line.endswith((" …", " s")) for line in progress)
    machine = dynascope(*arguments, "--json")
    assert machine.code == 2
    assert machine.answer.keys() == {"error"}
    assert machine.answer["error"].keys() == {"message", "argument", "value", "remedy"}
    assert f"dynascope: {machine.answer['error']['message']}" == sentence
    assert machine.answer["error"]["remedy"] in sentence
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("arguments", SLIPS)
def test_a_slip_of_the_pen_is_told_without_a_traceback(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    said = dynascope(*arguments)
    assert said.code == 2
    assert said.out == ""
    assert "dynascope" in said.err
    assert "Traceback" not in said.err
    assert all(word in said.err for word in arguments[-1:] if word.startswith("--"))
    assert said.err.count("\n") == 1
    machine = dynascope(*arguments, "--json")
    assert machine.code == 2
    assert machine.err == ""
    assert machine.answer["error"]["argument"] == "arguments"
    assert machine.answer["error"]["value"] == [*arguments, "--json"]
    assert not any(line in machine.answer["error"]["message"] for line in ("─", "│", "---"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_folder_that_cannot_be_made_is_refused_before_any_work(monkeypatch, data, tmp_path, place):
    monkeypatch.setattr("dynascope.cli.user_data.UserData.task", lambda *_: pytest.fail("it began to work"))
    (tmp_path / "file").write_text("mine")
    said = dynascope("predict", data, "--json", "--out", tmp_path / place)
    assert said.code == 2
    assert said.answer["error"]["argument"] == "out"
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.slow
@given(
    st.lists(
        st.sampled_from(WORDS),
        max_size=6,
    )
)
@settings(max_examples=8)
def test_no_arguments_whatever_end_in_a_traceback(arguments):
    said = dynascope(*arguments)
    assert said.code in (0, 2)
    if "--json" in arguments and said.code == 2:
        assert said.answer.keys() == {"error"}


# Files.


def test_the_page_and_the_record_are_named_after_task_and_network(predicted):
    _, out = predicted
    assert {path.name for path in out.iterdir()} == {"dynascope-trees-linear.html", "dynascope-trees-linear.zarr.zip"}


def test_a_prediction_says_how_it_was_made(predicted, data):
    said, _ = predicted
    tree = store.load(said.answer["record"])
    assert tree.provenance.command == f"dynascope predict {data} --network linear"
    assert {name: each.value for name, each in tree.parameters.items()} == {"seed": 0, "width": 50}
    assert len(tree.predicted.attrs["data_hash"]) == 12
    assert tree.provenance.date.endswith(" UTC")


@pytest.mark.slow
def test_the_command_in_the_results_makes_them_once_more(table, tmp_path):
    flags = ["--network", "diagonal", "--target", "yield", "loss <b>", "--only", "yield", "--normalised"]
    first = store.load(dynascope("predict", table, *flags, "--json", "--out", tmp_path).answer["record"])
    words = shlex.split(first.provenance.command)
    again = store.load(dynascope(*words[1:], "--json", "--out", tmp_path).answer["record"])
    assert again.predicted.identical(first.predicted)


@pytest.mark.slow
def test_results_are_named_after_what_was_changed_and_running_twice_keeps_both(data, tmp_path):
    names = []
    for flags in (["--scale", 1e-5], ["--scale", 1e-7], ["--scale", 1e-7], ["--width", 9, "--seed", 3]):
        names.append(Path(dynascope("predict", data, *flags, "--json", "--out", tmp_path).answer["record"]).name)
    assert names == [
        "dynascope-trees-linear-scale=1e-05.zarr.zip",
        "dynascope-trees-linear-scale=1e-07.zarr.zip",
        "dynascope-trees-linear-scale=1e-07-run-2.zarr.zip",
        "dynascope-trees-linear-seed=3-width=9.zarr.zip",
    ]
    scales = [store.load(tmp_path / name).predicted.attrs["scale"] for name in names]
    assert scales == [1e-5, 1e-7, 1e-7, 1e-8]
    assert len(list(tmp_path.iterdir())) == 2 * len(names)


def test_report_refuses_a_folder_in_place_of_its_page(predicted, tmp_path):
    said = dynascope("report", predicted[0].answer["record"], "--out", tmp_path)
    assert said.code == 2
    assert "is a folder" in said.err


def test_a_file_name_of_any_letters_gives_files_in_the_folder_which_is_made_as_deep_as_wanted(data, tmp_path):
    source, out = tmp_path / "größe [1] & more.npz", tmp_path / "a" / "b"
    source.write_bytes(data.read_bytes())
    said = dynascope("predict", source, "--json", "--out", out)
    assert said.code == 0
    assert Path(said.answer["record"]).parent == out
    assert Path(said.answer["record"]).name == "dynascope-größe--1----more-linear.zarr.zip"
    assert Path(said.answer["record"]).is_file()
    assert len(list(out.iterdir())) == 2


@pytest.mark.slow
def test_report_writes_the_page_again(checked, tmp_path):
    _, out = checked
    page = out / "dynascope-trees-linear-check.html"
    before = page.read_text("utf-8")
    page.unlink()
    said = dynascope("report", out / "dynascope-trees-linear-check.zarr.zip")
    assert said.code == 0
    assert str(page) in said.out
    assert HEADINGS["agree"] in page.read_text("utf-8")
    assert len(page.read_text("utf-8")) == pytest.approx(len(before), rel=1e-3)
    assert (
        dynascope("report", out / "dynascope-trees-linear-check.zarr.zip", "--out", tmp_path / "other.html").code == 0
    )
    assert (tmp_path / "other.html").read_text("utf-8") == page.read_text("utf-8")


@pytest.mark.parametrize("name", ["nowhere.zarr.zip", "trees.npz"])
def test_report_refuses_what_is_not_a_record(data, name):
    said = dynascope("report", data.parent / name)
    assert said.code == 2
    assert said.err.startswith("dynascope: ")
    assert said.err.count("\n") == 1
    assert not (data.parent / name).with_suffix(".html").exists()


# Kinds of data.


@pytest.mark.slow
def test_a_table_with_several_targets_names_features_and_targets(table, tmp_path):
    said = dynascope("predict", table, "--target", "yield", "loss <b>", "--raw", "--json", "--out", tmp_path)
    assert said.code == 0
    assert [jump["accelerated_time"] for jump in said.answer["jumps"]] == pytest.approx([0.5, 2.0], rel=1e-10)
    record = store.load(said.answer["record"]).predicted
    assert record["feature"].to_numpy().tolist() == ["height", "girth", "age"]
    assert record["target"].to_numpy().tolist() == ["yield", "loss <b>"]
    page = (tmp_path / "dynascope-orchard-linear-target=yield,loss--b--raw.html").read_text("utf-8")
    assert "<b>" not in page.split("<script>")[0]


def test_a_single_target_can_be_kept(table, tmp_path):
    flags = ["--raw", "--target", "yield", "loss <b>", "--only", "yield", "--network", "diagonal"]
    said = dynascope("predict", table, *flags, "--json", "--out", tmp_path)
    assert said.code == 0
    (jump,) = said.answer["jumps"]
    assert jump["learned"]["active"] == [0]
    assert jump["learned"]["features"] == ["height"]
    assert jump["learned"]["coefficients"] == pytest.approx([2.0], rel=1e-10)
    assert jump["accelerated_time"] == pytest.approx(0.5, rel=1e-10)


@pytest.fixture(scope="module")
def kinds(folder):
    """A table whose target is text, in three kinds of unequal size."""
    draw = np.random.default_rng(1)
    kind = np.repeat(["oak", "elm", "yew"], [12, 9, 7])
    centre = {"oak": (3.0, 0.0), "elm": (0.0, 2.0), "yew": (-2.0, -1.0)}
    x = np.array([centre[each] for each in kind]) + 0.3 * draw.normal(size=(28, 2))
    pd.DataFrame({"height": x[:, 0], "girth": x[:, 1], "kind": kind}).to_parquet(folder / "kinds.parquet")
    return folder / "kinds.parquet"


def test_class_labels_are_encoded_and_the_page_says_so(kinds, tmp_path):
    said = dynascope("predict", kinds, "--target", "kind", "--json", "--out", tmp_path)
    assert said.code == 0
    assert len(said.answer["jumps"]) == 2
    page = (tmp_path / "dynascope-kinds-linear-target=kind.html").read_text("utf-8")
    assert re.search(r"elm \(9 .*oak \(12 .*yew \(7 ", page)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [(3, 4), (5, 13), (10, 19)])
def test_two_classes_are_one_target_for_a_diagonal_network(folder, tmp_path, first, second):
    draw = np.random.default_rng(first)
    label = np.repeat(["calm", "storm"], [first, second])
    wind = 9.0 * (label == "storm") + 0.1 * draw.normal(size=len(label))
    path = folder / f"weather-{first}.csv"
    pd.DataFrame({"wind": wind, "moon": draw.normal(size=len(label)), "label": label}).to_csv(path, index=False)
    said = dynascope("predict", path, "--target", "label", "--network", "diagonal", "--json", "--out", tmp_path)
    assert said.code == 0
    assert said.answer["jumps"][0]["learned"]["features"] == ["wind"]
    assert said.answer["jumps"][0]["learned"]["coefficients"][0] > 0


@pytest.mark.slow
def test_integer_labels_can_be_read_as_quantities(folder, tmp_path):
    path = folder / "grades.csv"
    pd.DataFrame({"hours": np.arange(12) % 5, "grade": np.arange(12) % 3}).to_csv(path, index=False)
    for flags, targets in ([], 3), (["--classification", "False"], 1):
        said = dynascope("predict", path, "--target", "grade", *flags, "--json", "--out", tmp_path)
        assert store.load(said.answer["record"]).predicted.sizes["target"] == targets


# Numbers of the theory ledger.


def test_the_reference_staircase_of_a_linear_network_is_reproduced(folder, tmp_path):
    cross = np.array([[2, 0.3, -0.1], [0.2, 1.2, 0.25], [0.1, -0.3, 0.7]])
    moment = np.array([[1, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 0.6]])
    # The noise adds 0.1 to the target power.
    power = cross @ np.linalg.solve(moment, cross.T) + 0.1 / 3 * np.eye(3)
    samples = with_moments(np.block([[moment, cross.T], [cross, power]]))
    np.savez(folder / "reference.npz", x=samples[:, :3], y=samples[:, 3:])
    answer = dynascope("predict", folder / "reference.npz", "--json", "--out", tmp_path).answer
    times = [jump["accelerated_time"] for jump in answer["jumps"]]
    levels = [answer["initial_loss"], *(jump["loss_after"] for jump in answer["jumps"])]
    assert times == pytest.approx([0.482456785599, 0.822576936783, 1.2395238943], rel=1e-6)
    assert levels == pytest.approx([3.239425545571, 1.092662417438, 0.410201930452, 0.05], abs=1e-9)
    assert answer["theory"] == "greedy low-rank learning"


@pytest.fixture(scope="module")
def leaving(folder):
    """Data on which a coordinate of a diagonal network is dropped again; mirrored, so that its mean is zero."""
    x = np.array([[1, -0.75, -0.15, -0.43], [0.85, 0.94, -0.97, -0.96], [-0.99, 0.96, 0.7, -0.15]])
    y = np.array([-0.39, -1.15, 1.98])
    np.savez(folder / "leaving.npz", x=np.vstack([x, -x]), y=np.append(y, -y))
    return folder / "leaving.npz"


def test_the_reference_staircase_of_a_diagonal_network_is_reproduced(leaving, tmp_path):
    answer = dynascope("predict", leaving, "--network", "diagonal", "--json", "--out", tmp_path).answer
    times = [jump["accelerated_time"] for jump in answer["jumps"]]
    levels = [answer["initial_loss"], *(jump["loss_after"] for jump in answer["jumps"])]
    assert times == pytest.approx([0.90152357484148, 2.26711189270040, 4.70381533762842, 12.71530677967437], rel=1e-6)
    assert levels == pytest.approx(
        [0.89916666666667, 0.21626950035768, 0.11543425308171, 0.02130584129321, 0.0], abs=1e-9
    )
    learned = [jump["learned"] for jump in answer["jumps"]]
    assert [each["active"] for each in learned] == [[0], [0, 2], [1, 2], [1, 2, 3]]
    assert learned[-1]["coefficients"] == pytest.approx([0.413381143319, 2.141424684435, -0.561045488731], abs=1e-9)
    assert "drops x1" in learned[2]["description"]


@pytest.mark.slow
def test_the_reference_slopes_of_a_diagonal_network_are_observed(leaving, tmp_path):
    flags = ["--network", "diagonal", "--scale", 1e-8, "--slope", "--json", "--out", tmp_path]
    check = dynascope("predict", leaving, *flags).answer["check"]
    # The ledger's slopes between these scales, which its own solver knew to 1e-5.
    slopes = [jump["slope"] for jump in check["jumps"]]
    assert slopes == pytest.approx([0.901515, 2.267122, 4.703823, 12.715246], rel=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("network", "only"), [("linear", []), ("diagonal", ["--only", "y1"])])
@pytest.mark.parametrize("scale", [1e-20, 1e-300])
def test_scales_far_below_the_range_of_squares_work(data, tmp_path, network, only, scale):
    flags = ["--network", network, *only, "--scale", scale, "--slope", "--json", "--out", tmp_path]
    said = dynascope("predict", data, *flags)
    assert said.code == 0
    assert said.answer["scale"] == scale
    expected = [0.5] if only else [0.5, 2.0]
    jumps = said.answer["check"]["jumps"]
    assert [jump["slope"] for jump in jumps] == pytest.approx(expected, rel=1e-4)
    # The offset of a time stays bounded, by a few, while the time itself is log(1/scale)/2 and more.
    assert [jump["accelerated_time"] for jump in jumps] == pytest.approx(expected, abs=5 / np.log(1 / scale))


# What people read.


def test_a_prediction_prints_its_table_and_where_the_files_are(data, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    said = dynascope("predict", data, "--open", "--out", tmp_path)
    assert opened == [(tmp_path / "dynascope-trees-linear.html").as_uri()]
    assert said.code == 0
    assert "\x1b" not in said.out + said.err
    assert "linear-staircase" in said.out
    assert said.out.endswith(f"Page: {tmp_path / 'dynascope-trees-linear.html'}\n")
    assert f"Record: {tmp_path / 'dynascope-trees-linear.zarr.zip'}\n" in said.out
    assert said.err == ""


def test_a_study_prints_its_verdict_and_where_the_files_are_and_opens_the_page(tmp_path, monkeypatch):
    opened, curve = [], make_record({"loss": (("time",), [1.0, 0.5])}, {"time": [0.0, 1.0]})
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    monkeypatch.setattr(find_study("layerwise-modes"), "run", lambda self: compare(curve, curve))
    said = dynascope("run", "layerwise-modes", "--times", 40, "--open", "--out", tmp_path)
    page = tmp_path / "dynascope-layerwise-modes-times=40.html"
    assert said.code == 0
    assert opened == [page.as_uri()]
    assert HEADINGS["agree"] in said.out
    assert said.out.endswith(f"Page: {page}\n")


@pytest.mark.slow
def test_a_check_prints_both_sides_and_the_verdict(data, tmp_path):
    said = dynascope("predict", data, "--check", "--out", tmp_path)
    assert said.code == 0
    assert "observed" in said.out
    assert HEADINGS["agree"] in said.out
    assert "\x1b" not in said.out


# A process of its own.


@pytest.mark.slow
def test_a_pipe_of_few_letters_gets_json_all_the_same(data, tmp_path):
    source = tmp_path / "größe.npz"
    source.write_bytes(data.read_bytes())
    said = in_a_process("predict", source, "--json", "--out", tmp_path, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert said.code == 0
    assert Path(said.answer["record"]).name == "dynascope-größe-linear.zarr.zip"
    assert said.err == ""


@pytest.mark.slow
def test_the_exit_code_reaches_the_shell(tmp_path):
    said = in_a_process("predict", tmp_path / "nowhere.npz", "--json")
    assert said.code == 2
    assert said.answer["error"]["argument"] == "data"


# Real data, once.


@pytest.fixture(scope="module")
def handwritten(tmp_path_factory):
    out = tmp_path_factory.mktemp("handwritten")
    return dynascope("predict", "digits", "--check", "--slope", "--json", "--out", out), out


@pytest.mark.slow
def test_on_digits_theory_and_experiment_agree(handwritten):
    said, _ = handwritten
    check = said.answer["check"]
    assert said.code == 0
    assert check["verdict"] == "agree"
    # Ten classes that sum to a constant leave nine directions.
    assert len(said.answer["jumps"]) == len(check["jumps"]) == 9
    slopes = [jump["slope"] for jump in check["jumps"]]
    assert slopes == pytest.approx([jump["accelerated_time"] for jump in said.answer["jumps"]], rel=0.05)


@pytest.mark.slow
def test_on_digits_the_plateaus_are_those_of_reduced_rank_regression(handwritten):
    task = digits()
    fit = task.inputs @ np.linalg.lstsq(task.inputs, task.targets, rcond=None)[0]
    explained = np.linalg.svd(fit, compute_uv=False)[:9] ** 2
    losses = (np.sum(task.targets**2) - np.cumsum(explained)) / (2 * task.samples)
    assert [jump["loss_after"] for jump in handwritten[0].answer["jumps"]] == pytest.approx(losses, rel=1e-8)


@pytest.mark.slow
def test_the_page_of_digits_shows_what_is_learned_and_how_the_data_was_treated(handwritten):
    page = (handwritten[1] / "dynascope-digits-linear-check-slope.html").read_text("utf-8")
    assert HEADINGS["agree"] in page
    assert "1797" in page
