from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from pathlib import Path

import pytest

import dynascope
from dynascope import alternating, comparison, flows, tasks
from dynascope.cli.predict import Predict
from dynascope.cli.remedies import in_options

SOURCE = Path(dynascope.__file__).parent
# What the command runs, from the file of the user to the verdict.
RUN_BY_PREDICT = (
    *("prediction", "alternating", "flows/solvers", "comparison"),
    *("tasks/data/assembled.py", "tasks/data/columns.py", "tasks/data/files.py", "tasks/data/gaps.py"),
    *("tasks/data/delimited.py", "tasks/data/inputs.py", "tasks/data/layout.py", "tasks/data/names.py"),
    *("tasks/data/number_marks.py", "tasks/data/roles.py", "tasks/data/table_files.py", "tasks/data/targets.py"),
    *("flows/exact/polar_neurons.py", "flows/exact/neuron_bundles.py", "flows/exact/signed_phases.py"),
    "observation.py",
)
FUNCTIONS = (
    dynascope.predict,
    dynascope.observe,
    tasks.from_file,
    alternating.alternating_flow,
    comparison.own_curve,
    flows.polar_flow,
    flows.descend,
)
# Words that are arguments in Python, and words of their own in a sentence too.
ALSO_WORDS = {"scale", "seed", "loss", "steps", "seconds", "points", "target", "drop", "missing", "centre", "path"}
ALSO_WORDS |= {"task", "network", "flow", "losses", "classification", "normalised", "curve", "probes", "tie", "save"}
OF_OTHERS = re.compile(r"to_csv\([^)]*\)|torch\.nn\.\w+\(\)|DataFrame\.to_parquet|tasks\.from_table\([^)]*\)")


def told(node):
    """The words of a string in the code, with braces where values come."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(told, node.values))
    if isinstance(node, ast.FormattedValue):
        return "{}"
    return " ".join(told(each) for each in ast.iter_child_nodes(node))


def tells_what_to_do(node):
    if isinstance(node, ast.keyword):
        return node.arg == "remedy"
    if isinstance(node, ast.Assign):
        return "remedy" in {getattr(each, "id", "") for each in node.targets}
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("warnings.append")


def remedies():
    for room in RUN_BY_PREDICT:
        place = SOURCE / room
        assert place.exists()
        for file in [place] if place.is_file() else sorted(place.rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if tells_what_to_do(node):
                    yield told(node)


def test_every_remedy_of_what_predict_runs_names_options_that_it_has():
    options = {f"--{field.name.replace('_', '-')}" for field in dataclasses.fields(Predict)}
    arguments = {name for each in FUNCTIONS for name in inspect.signature(each).parameters} - ALSO_WORDS
    arguments = {name for name in arguments if not hasattr(Predict, name) or "_" in name}
    found = [sentence for sentence in remedies() if sentence.strip()]
    assert any("max_steps" in sentence for sentence in found)
    for sentence in found:
        said = in_options(sentence)
        assert set(re.findall(r"--[a-z][\w-]*", said)) <= options, said
        rest = re.sub(r"--[a-z][\w-]*", "", OF_OTHERS.sub("", said))
        words = set(re.findall(r"\b[a-z_]+\b", rest))
        assert not words & {name for name in arguments if "_" in name}, said
        assert not re.search(r"\b\w+=(?!=)", rest), said
        assert "duration" not in words, said


@pytest.mark.parametrize(
    ("python", "command"),
    [
        ("No neuron was activated in 20000 steps; raise max_steps to go on.", "raise --max-steps to go on."),
        ("check the data for extreme values, or shorten the duration", "stop after fewer --jumps"),
        (
            'drop or fill them (missing="drop" or "mean", on the command line --missing), or leave out',
            "them (--missing),",
        ),
        ("the first loss fits loss='mse' (mean of the squares)", "fits --loss mse (mean"),
        ("give learning_rate=, one number", "give --learning-rate, one number"),
        ("Steps of learning rate 0.02 on loss = mean", "on loss = mean"),
    ],
)
def test_what_is_said_in_python_is_said_in_options(python, command):
    assert command in in_options(python)
