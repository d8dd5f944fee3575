"""Files that no one should give: each is refused in one line that says what to do, before it costs anything."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from robustness.hostile_files import HOSTILE, IMAGES

from dynascope.cli.commands import main
from dynascope.comparison import compare
from dynascope.errors import InputError
from dynascope.record import load, make_record, save
from dynascope.report import render_page
from dynascope.tasks import read_images

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pipes, devices, and what a process took")

_LIMIT = 10**8  # bytes that may be unpacked
_SECONDS, _MEMORY = 1.0, 10**8  # that a refusal may cost beyond that of a file which is missing
# One command after the other in a process of its own, with the seconds of the processor and the memory each took.
EACH = """
import json, resource, sys, time
from dynascope.cli.commands import main
import contextlib, io

def most():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) * 1024

def told(arguments):
    open("/proc/self/clear_refs", "w").write("5")
    before, start, out, err = most(), time.process_time(), io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return code, out.getvalue(), err.getvalue(), time.process_time() - start, most() - before

for line in sys.stdin:
    print(json.dumps(told(json.loads(line))), flush=True)
"""


@pytest.fixture(scope="module")
def told():
    """What runs a command and gives its code, output, errors, seconds and bytes, in one process for all."""
    process = subprocess.Popen(
        [sys.executable, "-c", EACH],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "DYNASCOPE_MEMORY": str(_LIMIT)},
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def ask(*arguments: object) -> tuple[int, str, str, float, int]:
        process.stdin.write(json.dumps([str(each) for each in arguments]) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    for name in ("missing.csv", "missing.npz", "missing.parquet"):
        ask("predict", name)
    ask("report", "missing.zarr")
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
    code, out, err, seconds, memory = told(*options)
    lines = err.splitlines()
    assert (code, out) == (2, "")
    assert len(lines) == 1
    assert lines[0].startswith("dynascope: ")
    assert ": " in lines[0].removeprefix("dynascope: ")
    assert len(lines[0]) < 600 + 2 * len(str(path))
    assert seconds < _SECONDS
    assert memory < _MEMORY
    print(f"{make.__name__}: {seconds:.2f} s, {memory / 1e6:.0f} MB: {lines[0][:150]}")


@pytest.mark.parametrize("make", IMAGES, ids=lambda make: make.__name__)
def test_hostile_images_are_refused_before_they_are_unpacked(make, tmp_path, monkeypatch):
    if make.__name__ == "image_bomb":
        pytest.importorskip("PIL")
    monkeypatch.setenv("DYNASCOPE_MEMORY", str(_LIMIT))
    with pytest.raises(InputError, match=r"DecompressionBombError|holds more than 4 bytes"):
        read_images(make(tmp_path))


# Records that were damaged.


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    curve = make_record({"loss": (["time"], np.linspace(1, 0, 50))}, {"time": np.arange(50.0)})
    return save(compare(curve, curve), tmp_path_factory.mktemp("record") / "a.zarr")


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
    damaged = shutil.copytree(record, tmp_path / "damaged.zarr")
    files = sorted(file for file in damaged.rglob("*") if file.is_file())
    wrong, codes = [], []
    for file in files:
        whole = file.read_bytes()
        for name, damage in {**DAMAGE, "gone": None}.items():
            if damage is None:
                file.unlink()
            else:
                file.write_bytes(damage(whole))
            codes.append(main(["report", str(damaged)]))
            file.write_bytes(whole)
            said = capsys.readouterr()
            one_line = said.err.count("\n") == 1 and "Traceback" not in said.err and "not foreseen" not in said.err
            if not (codes[-1] == 0 or (codes[-1] == 2 and one_line)):
                wrong.append(f"{file.relative_to(damaged)} {name}: {codes[-1]} {said.err[:300]}")
    assert main(["report", str(damaged)]) == 0  # whole again, so that each was damaged in one way only
    print(f"{len(codes)} damaged records, {codes.count(2)} refused")
    assert not wrong, "\n".join(wrong)
    assert codes.count(2) > len(codes) / 2


SPOILED = ["[" * 10**5, '{"a": 1}', "9" * 5000, "9" * 400, "NaN", "", 1e308, [1], {"a": []}]


@pytest.mark.slow
def test_every_attribute_of_a_record_that_says_something_else_is_refused_or_shown(record):
    tree, wrong, refused, shown = load(record), [], 0, 0
    for node in [tree, *tree.children.values()]:
        for name, said in list(node.attrs.items()):
            for spoiled in SPOILED:
                node.attrs[name] = spoiled
                try:
                    shown += "</html>" in render_page(tree)
                except InputError:
                    refused += 1
                except Exception as error:
                    wrong.append(f"{node.path} {name} {str(spoiled)[:20]}: {type(error).__name__} {str(error)[:200]}")
            node.attrs[name] = said
    print(f"{refused} spoiled attributes were refused, {shown} shown")
    assert not wrong, "\n".join(wrong)
    assert refused >= 20


def test_a_page_is_written_only_over_a_page(record, tmp_path, capsys):
    other, page = tmp_path / "letter.html", tmp_path / "page.html"
    other.write_text("<!doctype html><p>mine</p>")
    assert main(["report", str(record), "--out", str(other)]) == 2
    assert "is not a page" in capsys.readouterr().err
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
