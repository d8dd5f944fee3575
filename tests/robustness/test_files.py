"""Files that no one should give: each is refused in one line that says what to do, before it costs anything."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
from robustness.hostile_files import HOSTILE, IMAGES
from zip_members import read_members, write_members

from dynascope.cli.commands import main
from dynascope.comparison import Claim, compare, report_claims
from dynascope.errors import InputError
from dynascope.results import Chart, Parameter, load, make_record, save
from dynascope.results.tree import to_tree
from dynascope.tasks import read_images

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pipes, devices, and what a process took")

_LIMIT = 10**8  # bytes that may be unpacked
_MEMORY = 10**8  # bytes that a rejection may take beyond those of a missing file
# One command after the other in one process, with the memory that each took.
EACH = """
import json, sys
from dynascope.cli.commands import main
import contextlib, io

def most():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) * 1024

def told(arguments):
    open("/proc/self/clear_refs", "w").write("5")
    before, out, err = most(), io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return code, out.getvalue(), err.getvalue(), most() - before

for line in sys.stdin:
    print(json.dumps(told(json.loads(line))), flush=True)
"""


@pytest.fixture(scope="module")
def told():
    """What runs a command and gives its code, output, errors and bytes, in one process for all."""
    process = subprocess.Popen(
        [sys.executable, "-c", EACH],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "DYNASCOPE_MEMORY": str(_LIMIT)},
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def ask(*arguments: object) -> tuple[int, str, str, int]:
        process.stdin.write(json.dumps([str(each) for each in arguments]) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    for name in ("missing.csv", "missing.npz", "missing.parquet"):
        ask("predict", name)
    ask("report", "missing.zarr.zip")
    yield ask
    process.stdin.close()
    process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("make", HOSTILE, ids=lambda make: make.__name__)
def test_a_hostile_file_is_refused_in_a_line_before_it_costs_anything(make, tmp_path, told, request):
    path = make(tmp_path)
    # What deletes the folders of tests does not get to the ground of some.
    request.addfinalizer(lambda: subprocess.run(["rm", "-rf", str(tmp_path)], check=True))
    options = ["report", path] if path.suffix in (".zip", ".zarr") else ["predict", path, "--out", tmp_path]
    if path.suffix in (".csv", ".parquet"):
        options += ["--target", "y"]
    code, out, err, memory = told(*options)
    lines = err.splitlines()
    assert (code, out) == (2, "")
    assert len(lines) == 1
    assert lines[0].startswith("dynascope: ")
    assert ": " in lines[0].removeprefix("dynascope: ")
    assert len(lines[0]) < 600 + 2 * len(str(path))
    assert memory < _MEMORY
    print(f"{make.__name__}: {memory / 1e6:.0f} MB: {lines[0][:150]}")


@pytest.mark.parametrize("make", IMAGES, ids=lambda make: make.__name__)
def test_hostile_images_are_refused_before_they_are_unpacked(make, tmp_path, monkeypatch):
    monkeypatch.setenv("DYNASCOPE_MEMORY", str(_LIMIT))
    with pytest.raises(InputError, match=r"DecompressionBombError|contains more than 4 bytes"):
        read_images(make(tmp_path))


# Records that were damaged.


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    curve = make_record({"loss": (["time"], np.linspace(1, 0, 50))}, {"time": np.arange(50.0)})
    return save(compare(curve, curve), tmp_path_factory.mktemp("record") / "a.zarr.zip")


DAMAGE = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "noise": lambda data: np.random.default_rng(0).bytes(len(data)),
    "nested": lambda data: b"[" * 10**5,
    "another type": lambda data: b"[1e400]",
    "an integer of 5000 digits": lambda data: b'{"convention": ' + 5000 * b"9" + b"}",
}


@pytest.mark.slow
def test_every_file_of_a_record_damaged_in_every_way_is_refused_or_does_no_harm(record, tmp_path, capsys):
    damaged, whole = tmp_path / "damaged.zarr.zip", read_members(record)
    wrong, codes = [], []
    for member, content in sorted(whole.items()):
        for name, damage in {**DAMAGE, "gone": lambda data: None}.items():
            write_members(damaged, whole | {member: damage(content)})
            codes.append(main(["report", str(damaged)]))
            said = capsys.readouterr()
            one_line = said.err.count("\n") == 1 and "Traceback" not in said.err and "not foreseen" not in said.err
            if not (codes[-1] == 0 or (codes[-1] == 2 and one_line)):
                wrong.append(f"{member} {name}: {codes[-1]} {said.err[:300]}")
    write_members(damaged, whole)
    assert main(["report", str(damaged)]) == 0  # whole again, so that each was damaged in one way only
    print(f"{len(codes)} damaged records, {codes.count(2)} refused")
    assert not wrong, "\n".join(wrong)
    assert codes.count(2) > len(codes) / 2


def test_of_many_damaged_chunks_one_is_named_and_nothing_else_is_printed(tmp_path):
    names = [f"quantity_{number}" for number in range(30)]
    curves = {name: (["time"], np.random.default_rng(0).random(300)) for name in names}
    path = save(make_record(curves, {"time": np.arange(300.0)}), tmp_path / "a.zarr.zip")
    members = read_members(path)
    write_members(path, members | {f"{name}/0": members[f"{name}/0"][:-9] for name in names})
    command = [sys.executable, "-m", "dynascope", "report", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "is damaged" in done.stderr


def test_a_file_that_does_not_belong_to_a_record_is_not_read(record, tmp_path, monkeypatch):
    monkeypatch.setenv("DYNASCOPE_MEMORY", str(_LIMIT))
    path = save(load(record), tmp_path / "a.zip")
    with ZipFile(path, "a", ZIP_DEFLATED, compresslevel=1) as archive:
        for name in ("large.bin", "observed/loss/large.bin"):
            with archive.open(name, "w", force_zip64=True) as stream:
                for _ in range(4 * _LIMIT // 10**6):
                    stream.write(bytes(10**6))
    read = ZipFile.open
    opened = []

    def noted(self, member, *given, **more):
        opened.append(getattr(member, "filename", member))
        return read(self, member, *given, **more)

    monkeypatch.setattr(ZipFile, "open", noted)
    assert to_tree(load(path)).identical(to_tree(load(record)))
    assert "observed/loss/0" in opened
    assert not {"large.bin", "observed/loss/large.bin"} & {*opened}


# Attributes that say something else.


SPOILED = [5, None, [1], {"a": []}, "", "text", {"a": {"b": 1}}, "{nothing.here}", float("nan")]
SPOILED += [{"a": {"error": "x", "tolerance": 1, "agrees": True}}, [{"variables": ["none"]}], [["loss"]]]


@pytest.fixture(scope="module")
def of_jumps(tmp_path_factory):
    """The record of a staircase beside the run that it was compared with."""
    time, levels = np.linspace(0, 40, 400), np.array([1.0, 0.4, 0.1])
    attributes = {"scale": 1e-3, "initial_loss": 1.0, "theory": "a theory", "task": "a table", "network": "linear"}
    staircase = make_record(
        {
            "jump_time": (["jump"], [10.0, 20.0]),
            "accelerated_time": (["jump"], [1.0, 2.0]),
            "loss_before": (["jump"], levels[:-1]),
            "loss_after": (["jump"], levels[1:]),
            "learned": (["jump"], ["one", "two"]),
        },
        {"jump": [1, 2]},
        attributes={**attributes, "degree": 2, "normalised": False, "warnings": ["read with care"], "samples": 5},
    )
    loss = 0.1 + 0.6 / (1 + np.exp(5 * (time - 10))) + 0.3 / (1 + np.exp(5 * (time - 20)))
    said = report_claims(
        [Claim("A", "It is small.", 1.0, most=2.0), Claim("B", "It is large.", 1.0, 0.0, 3.0, least=2.0)]
    )
    run = make_record(
        {"loss": (["time"], loss), **{name: each for name, each in said.items() if name != "hypothesis"}},
        {"time": time, "hypothesis": said["hypothesis"][1]},
        attributes={"flow": "descent", "optimizer": "sgd", "learning_rate": 0.1, "batch_size": 5, "solver": "explicit"},
    )
    result = dataclasses.replace(
        compare(run, staircase, claims=["A", "B"]),
        question="What is learned?",
        meaning="The loss falls.",
        parameters={"scale": Parameter(0.001), "seed": Parameter(0, "Of the weights.", "zero")},
        charts=(Chart("loss", staircase=True),),
        study="a-study",
    )
    return save(result, tmp_path_factory.mktemp("jumps") / "a.zarr.zip")


@pytest.mark.slow
def test_every_attribute_of_a_record_that_is_spoiled_is_named_or_does_no_harm(of_jumps, tmp_path, capsys):
    spoiled, page = tmp_path / "a.zarr.zip", tmp_path / "page.html"
    wrong, codes, whole = [], [], read_members(of_jumps)
    groups = sorted(name for name in whole if name.endswith(".zattrs") and name.count("/") < 2)
    for member in [*groups, "observed/loss/.zattrs"]:
        of_array = member == "observed/loss/.zattrs"
        attributes = json.loads(whole[member])
        for name in attributes.keys() - {"format_version"}:
            for value in [*SPOILED, "gone"]:
                changed = {**attributes, name: value}
                if value == "gone":
                    del changed[name]
                write_members(spoiled, whole | {member: json.dumps(changed).encode()})
                codes.append(main(["report", str(spoiled), "--out", str(page)]))
                said = capsys.readouterr().err
                named = name in said or of_array
                if codes[-1] not in (0, 2) or (codes[-1] == 2 and not (said.count("\n") == 1 and named)):
                    wrong.append(f"{member} {name} {str(value)[:40]}: {codes[-1]} {said[:200]}")
                # Nothing but a number is read of a learning rate, which may be that of each layer.
                kept = name == "learning_rate" or (name, value) == ("batch_size", None) or of_array
                # A parameter may have any name and any plain value.
                kept = kept or (name == "parameters" and isinstance(value, dict))
                if codes[-1] == 0 and isinstance(value, list | dict | None) and not kept:
                    wrong.append(f"{member} {name} {value}: accepted")
    write_members(spoiled, whole)
    assert main(["report", str(spoiled), "--out", str(page)]) == 0
    print(f"{len(codes)} spoiled attributes, {codes.count(2)} refused")
    assert not wrong, "\n".join(wrong)
    assert codes.count(2) > len(codes) / 2


def test_a_page_is_written_only_over_a_page(record, tmp_path, capsys):
    other, page = tmp_path / "letter.html", tmp_path / "page.html"
    other.write_text("<!doctype html><p>mine</p>")
    assert main(["report", str(record), "--out", str(other)]) == 2
    assert "was not written by dynascope" in capsys.readouterr().err
    assert other.read_text() == "<!doctype html><p>mine</p>"
    for _ in range(2):
        assert main(["report", str(record), "--out", str(page)]) == 0
    assert "</html>" in page.read_text("utf-8")


@pytest.mark.slow
def test_a_disk_that_is_full_is_named_as_full(tmp_path):
    draw = np.random.default_rng(0)
    np.savez(tmp_path / "a.npz", x=draw.normal(size=(50, 2)), y=draw.normal(size=50))
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)); "
    limited += "from dynascope.cli.commands import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["predict", "a.npz", "--out", "there"]
    # Bytecode that is cut off would be found by every process after this one.
    environment = {**os.environ, "DYNASCOPE_CACHE": "off", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", limited, *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(Path(tmp_path, "there").iterdir()) == []
