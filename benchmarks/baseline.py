"""Comparison of the output of all studies, predictions and theory functions before and after a change of the code.

    python benchmarks/baseline.py record AFTER.json.xz [--only WORD] [--jobs 2]
    python benchmarks/baseline.py compare BEFORE.json.xz [BEFORE2.json.xz …] AFTER.json.xz

`record` runs every study at small settings, and `predict` and `which` on twenty pairs of a table and a network. It also
lists the studies, makes a few invalid calls, and evaluates every public theory function at the example of its
docstring. It stores the JSON output, the arrays of the record and the text of the page. It uses only the command line
of the installed dynascope, so it does not depend on internal changes.

`compare` lists the differences. Several recordings of the old code, made with different numbers of threads (set
`OMP_NUM_THREADS` and `PJRT_NPROC`), determine the noise floor. A number may differ by three times their largest
difference, or by 1e-10 of its size. If recordings of the same code differ by more than a thousandth, the training is
chaotic, and only verdict, claims and text are compared. Make all recordings on one machine.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import difflib
import html.parser
import itertools
import json
import lzma
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
import zarr
from sklearn import datasets

SETTINGS = Path(__file__).with_name("baseline_settings.txt")  # every study, at settings that take seconds
MISTAKES = """
run no-such-study
run agf-diagonal --depth 0
run agf-diagonal --depth two
predict {folder}/nowhere.csv --network linear
predict {folder}/iris.csv --target petals --network linear
predict {folder}/iris.csv --target target --network forest
predict {folder}/tall.csv --target target --network linear --scale -1
which {folder}/tall.csv --target target --network linear --scale 0
"""
EXACT = 1e-10  # relative difference that counts as equal
NOTHING = 1e-12  # a number below it is zero
CHAOTIC = 1e-3  # relative difference between recordings of the same code
PASSING = {"seconds", "record", "page", "version"}  # keys of the JSON output that change from run to run


def write_tables(folder: str) -> list[tuple[str, str]]:
    """Write nine tables, and return the pairs of a table and a kind of network to predict."""
    loaders = {
        "diabetes": datasets.load_diabetes,
        "wine": datasets.load_wine,
        "iris": datasets.load_iris,
        "cancer": datasets.load_breast_cancer,
    }
    for name, load in loaders.items():
        data = load(as_frame=True)
        target = data.target if name == "diabetes" else [str(data.target_names[label]) for label in data.target]
        data.data.assign(target=target).to_csv(f"{folder}/{name}.csv", index=False)
    rng = np.random.default_rng(31)
    sizes = {"wide": (40, 90), "tall": (400, 6), "teacher": (200, 5), "noisy": (150, 8)}
    for name, (samples, inputs) in sizes.items():
        x = rng.normal(size=(samples, inputs)) * np.geomspace(2, 0.5, inputs)
        if name == "wide":
            y = x[:, 3] - 0.7 * x[:, 11]
        elif name == "tall":
            y = x @ np.geomspace(1, 0.1, inputs)
        elif name == "teacher":
            y = np.maximum(x[:, 0] + x[:, 1], 0) - 0.6 * np.maximum(-x[:, 2], 0)
        else:
            y = x[:, 0] + 0.4 * x[:, 1] ** 2
        y = y + (0.3 if name == "noisy" else 0.02) * rng.normal(size=samples)
        columns = [*(f"x{number}" for number in range(inputs)), "target"]
        pd.DataFrame(np.c_[x, y], columns=columns).round(6).to_csv(f"{folder}/{name}.csv", index=False)
    several_classes = ("wine", "iris", "cancer")
    names = [*loaders, *sizes]
    pairs = [(name, "linear") for name in names]
    pairs += [(name, "diagonal") for name in names if name not in several_classes]
    pairs += [(name, "relu") for name in ("diabetes", "iris", "teacher", "tall")]
    return [*pairs, ("iris", "quadratic"), ("teacher", "quadratic"), ("iris", "attention")]


def commands(folder: str) -> list[list[str]]:
    """Return every command to run, without its options `--json` and `--out`."""
    found = [["list"]]
    found += [["run", *shlex.split(line)] for line in SETTINGS.read_text("utf-8").splitlines()]
    for name, network in write_tables(folder):
        arguments = [f"{folder}/{name}.csv", "--target", "target", "--network", network]
        found += [["predict", *arguments, "--check"], ["which", *arguments]]
    return found + [shlex.split(line.format(folder=folder)) for line in MISTAKES.strip().splitlines()]


class PageText(html.parser.HTMLParser):
    """Collects the visible text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Enter an element without visible text."""
        self._hidden += tag in ("script", "style", "svg")

    def handle_endtag(self, tag: str) -> None:
        """Leave an element without visible text."""
        self._hidden -= tag in ("script", "style", "svg")

    def handle_data(self, data: str) -> None:
        """Store a piece of visible text."""
        if data.strip() and not self._hidden:
            self.pieces.append(" ".join(data.split()))


def summary(values: np.ndarray) -> dict[str, Any]:
    """Return a few numbers that change if any entry changes."""
    shape = list(values.shape)
    if values.dtype.kind not in "biufc":
        return {"shape": shape, "words": [str(value) for value in values.ravel()[:1000]]}
    flat = values.astype(complex).view(float).ravel() if values.dtype.kind == "c" else values.astype(float).ravel()
    finite = np.where(np.isfinite(flat), flat, 0.0)
    largest = float(np.abs(finite).max(initial=0.0))
    unit = finite / largest if largest else finite
    weights = np.random.default_rng(0).normal(size=flat.size)
    entries = unit[np.unique(np.linspace(0, max(flat.size - 1, 0), 12).astype(int))] if flat.size else unit
    moments = [np.mean(unit), np.sqrt(np.mean(unit**2)), unit @ weights / np.linalg.norm(weights)] if flat.size else []
    return {
        "shape": shape,
        "not finite": int(np.sum(~np.isfinite(flat))),
        "largest": largest,
        "relative": [float(value) for value in (*moments, *entries)],
    }


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a JSON value with their paths; a long list of numbers is summarised as one leaf."""
    if isinstance(value, dict):
        for name, part in value.items():
            if name not in PASSING:
                yield from flat(part, f"{path}/{name}")
    elif isinstance(value, list):
        if len(value) > 8 and all(isinstance(part, int | float) for part in value):
            yield path, summary(np.array(value, float))
        else:
            for number, part in enumerate(value):
                yield from flat(part, f"{path}/{number}")
    else:
        yield path, value


def record_arrays(path: Path) -> dict[str, Any]:
    """Return a summary of every variable and coordinate of a record."""
    # Older versions write folders.
    store = zarr.storage.ZipStore(path, mode="r") if path.suffix == ".zip" else path
    with warnings.catch_warnings(action="ignore"), xr.open_datatree(store, engine="zarr") as tree:
        return {
            f"{node.path.rstrip('/')}/{name}": summary(variable.to_numpy())
            for node in tree.subtree
            for name, variable in node.to_dataset(inherit=False).variables.items()
            if not str(name).endswith("seconds")
        }


def run(command: list[str], folder: str) -> dict[str, Any]:
    """Run a command and return its output.

    The output contains the exit code, the leaves of the JSON output, the arrays of the record and the text of the page.
    """
    start = time.monotonic()
    out = tempfile.mkdtemp(dir=folder)
    options = ["--json"] + ["--out", out] * (command[0] in ("run", "predict"))
    done = subprocess.run(
        [sys.executable, "-m", "dynascope", *command, *options], capture_output=True, text=True, timeout=1800
    )
    report: dict[str, Any] = {"exit": done.returncode, "json": {}, "record": {}, "page": []}
    try:
        output = json.loads(done.stdout)
    except json.JSONDecodeError:
        report["json"] = {"/not JSON": (done.stdout + done.stderr)[-2000:]}
    else:
        report["json"] = dict(flat(output))
        verdict = (
            output.get("verdict") or (output.get("check") or {}).get("verdict") if isinstance(output, dict) else ""
        )
        seconds, name = time.monotonic() - start, " ".join(map(os.path.basename, command))
        print(f"{seconds:6.1f} s  {verdict or '':10} {name[:90]}", file=sys.stderr, flush=True)
    for path in Path(out).glob("*.zarr*"):
        report["record"] |= record_arrays(path)
    for path in Path(out).glob("*.html"):
        text = PageText()
        text.feed(path.read_text("utf-8"))
        report["page"] += text.pieces
    text = json.dumps(report).replace(out, "OUT").replace(folder, "FOLDER")
    return json.loads(re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "DATE", text))


def theory_values() -> dict[str, Any]:
    """Return the arrays that public theory functions return for the first call in their docstrings."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    # The tests of the theory make the same calls.
    from documented import members, numbers

    from dynascope import theory

    found = {}
    for name, member in sorted(members(theory).items()):
        for count, call in enumerate(member.calls[:1]):
            arrays = enumerate(numbers(member(call)))
            found |= {f"{name}/{count}/{part}": summary(array) for part, array in arrays}
    return found


def record(file: Path, only: str, jobs: int) -> None:
    """Run all commands whose names contain a word, and write their output."""
    with (
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ThreadPoolExecutor(jobs) as pool,
    ):
        named = {" ".join(map(os.path.basename, command)): command for command in commands(folder)}
        running = {name: pool.submit(run, command, folder) for name, command in named.items() if only in name}
        reports = {name: each.result() for name, each in running.items()}
    if only in "theory":
        reports["theory"] = {"exit": 0, "json": {}, "record": theory_values(), "page": []}
    file.write_bytes(lzma.compress(json.dumps(reports, ensure_ascii=False).encode()))


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def distance(a: Any, b: Any) -> float:
    """Return the distance of two leaves relative to their size; infinite for different values that are not numbers."""
    if a == b:
        return 0.0
    if is_number(a) and is_number(b):
        size = max(abs(a), abs(b))
        return abs(a - b) / size if size > NOTHING else 0.0
    if isinstance(a, dict) and isinstance(b, dict) and "relative" in a and "relative" in b:
        if (a["shape"], a["not finite"]) != (b["shape"], b["not finite"]):
            return np.inf
        ratio = distance(a["largest"], b["largest"])
        pairs = zip(a["relative"], b["relative"], strict=True)
        return max(ratio, *(abs(one - other) for one, other in pairs)) if a["largest"] > NOTHING else ratio
    return np.inf


def is_rounding(path: str, a: Any, b: Any, report: dict[str, Any]) -> bool:
    """Whether both values are errors far below their tolerance, so that their difference is rounding."""
    if not (path.endswith("/error") and is_number(a) and is_number(b)):
        return False
    tolerance = report["json"].get(path.removesuffix("error") + "tolerance")
    return max(abs(a), abs(b)) <= max(1e-9, 1e-9 * abs(tolerance or 0))


def shown(value: Any) -> str:
    text = f"{value['largest']:.12g} {value['shape']}" if isinstance(value, dict) and "largest" in value else str(value)
    return text if len(text) < 70 else f"{text[:67]}…"


def differences(before: list[dict[str, Any]], after: dict[str, Any], counts: collections.Counter) -> Iterator[str]:
    """Yield the differences between the output of a command and all recordings before."""
    if any(each["exit"] != after["exit"] for each in before):
        yield f"exit: {before[0]['exit']} -> {after['exit']}"
    for part in ("json", "record"):
        olds, new = [each[part] for each in before], after[part]
        for path in sorted(set(new).union(*olds)):
            if path not in new or any(path not in old for old in olds):
                yield f"{part}{path}: {'gone' if path not in new else 'new'}"
                continue
            values = [old[path] for old in olds]
            noise = max((distance(a, b) for a, b in itertools.combinations(values, 2)), default=0.0)
            off = min(distance(value, new[path]) for value in values)
            if noise > CHAOTIC:
                counts["chaotic, not compared"] += 1
            elif off == 0:
                counts["identical"] += 1
            elif off <= EXACT:
                counts["within 1e-10"] += 1
            elif off <= 3 * noise:
                counts["within the noise floor"] += 1
            elif any(is_rounding(path, value, new[path], after) for value in values):
                counts["errors that are rounding"] += 1
            else:
                yield f"{part}{path}: {shown(values[0])} -> {shown(new[path])} ({off:.1e}; noise {noise:.1e})"
    yield from text_differences([each["page"] for each in before], after["page"])


def text_differences(before: list[list[str]], after: list[str]) -> Iterator[str]:
    """Yield the pieces of text that changed on a page.

    Pieces that differ between the recordings before are compared without their numbers.
    """

    def without_numbers(text: str) -> str:
        return re.sub(r"[−+-]?\d+(\.\d+)?( × 10[⁻⁰¹²³⁴-⁹]+)?", "#", text)

    stable = set(before[0]).intersection(*before[1:])
    pages = before[0], after
    old, new = ([text if text in stable else without_numbers(text) for text in page] for page in pages)
    for change, start, stop, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if change != "equal":
            yield f"page: {' | '.join(before[0][start:stop])[:150]!r} -> {' | '.join(after[first:last])[:150]!r}"


def compare(files: list[Path], most: int) -> int:
    """Print the differences of each command and the number of equal values; return 1 if anything differs."""
    *before, after = [json.loads(lzma.decompress(file.read_bytes())) for file in files]
    counts, different = collections.Counter(), 0
    for name in sorted(set(after).union(*before)):
        if name not in after or any(name not in each for each in before):
            print(f"{name}: only in some files")
            continue
        found = list(differences([each[name] for each in before], after[name], counts))
        different += bool(found)
        if found:
            print(f"\n{name}: {len(found)} differences")
            print("\n".join(f"    {line}" for line in found[:most]))
    print(f"\n{len(after)} commands, {different} with differences; values: {dict(counts)}")
    return int(bool(different))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    recording = actions.add_parser("record")
    recording.add_argument("file", type=Path)
    recording.add_argument("--only", default="", help="run only commands that contain this word")
    recording.add_argument("--jobs", type=int, default=2, help="number of parallel commands")
    comparing = actions.add_parser("compare")
    comparing.add_argument("files", type=Path, nargs="+", help="recordings before the change, and one after it")
    comparing.add_argument("--most", type=int, default=8, help="maximum number of lines per command")
    given = parser.parse_args()
    if given.action == "compare":
        return compare(given.files, given.most)
    record(given.file, given.only, given.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
