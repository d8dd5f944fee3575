"""Cost and results of `dynascope predict DATA --network KIND --check` at default settings.

Each cell is a data set and a network. Its command runs twice in separate processes: *cold*, without compiled programs,
and *warm*, with the programs of the first run. The table contains the CPU seconds of both runs over all threads, the
exit code, the verdict, whether prediction, page and record exist, and a remark on any computation that was cut short.

Run `python benchmarks/default_commands.py [--file FILE] [--only WORD …]`. Cells that are already in the file are
skipped, so a stopped run can be resumed. `--only` selects cells whose names contain all words.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from predictions_on_data import DATA, NETWORKS
from resumable import keep, rows

from dynascope.tasks import Task

FILE = Path(__file__).parent.parent / "docs" / "concepts" / "default_commands.csv"
COLUMNS = ("data", "network", "cold", "warm", "exit", "verdict", "prediction", "page", "record", "remark")
LIMIT = 60.0  # CPU seconds, the limit for a command
CUT_SHORT = (
    "stopped",
    "curve at this scale ends",
    "could not be computed",
    "limit of",
)  # words in the warnings of incomplete computations
ENDED = {0: "agree", 1: "disagree", 4: "undecided"}  # exit codes of completed checks


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    kept = {(row["data"], row["network"]) for row in rows(options.file)}
    for cell in itertools.product(DATA, NETWORKS):
        if cell not in kept and all(word in " ".join(cell) for word in options.only):
            keep(options.file, found(*cell), COLUMNS)
    print_summary(rows(options.file))


def found(data: str, network: str) -> dict[str, Any]:
    """Return the row of one cell."""
    with tempfile.TemporaryDirectory() as folder:
        file = written(DATA[data](), network, Path(folder) / "data.npz")
        cold, warm = (ran(file, network, Path(folder) / name) for name in ("first", "second"))
    return {"data": data, "network": network, "cold": cold.pop("seconds"), "warm": warm.pop("seconds")} | warm


def written(task: Task, network: str, file: Path) -> Path:
    """Write the data to a file, with one output for a diagonal network."""
    outputs = task.targets[:, :1] if network == "diagonal" else task.targets
    np.savez(file, x=task.inputs, y=outputs)
    return file


def ran(file: Path, network: str, out: Path) -> dict[str, Any]:
    """Run one command, and return its output and its cost."""
    out.mkdir()
    words = ["predict", str(file), "--network", network, "--check", "--json", "--out", str(out)]
    environment = os.environ | {"DYNASCOPE_CACHE": str(file.parent / "programs")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(
        [sys.executable, "-m", "dynascope", *words], env=environment, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    answer = json.loads(run.stdout) if run.stdout.strip() else {}
    remarks = [answer["error"]["message"]] if "error" in answer else []
    remarks += [each for each in answer.get("warnings", []) if any(word in each for word in CUT_SHORT)]
    return {
        "seconds": f"{seconds:.1f}",
        "exit": run.returncode,
        "verdict": ENDED.get(run.returncode, "none"),
        "prediction": "yes" if answer.get("jumps") else "no",
        "page": exists(out, "*.html"),
        "record": exists(out, "*.zarr.zip"),
        "remark": " ".join(remarks),
    }


def exists(folder: Path, pattern: str) -> str:
    return "yes" if any(folder.glob(pattern)) else "no"


def broken(row: dict[str, str]) -> bool:
    """Whether a command took too long or lacks a result."""
    lacks = any(row[name] != "yes" for name in ("prediction", "page", "record"))
    return lacks or row["verdict"] == "none" or max(float(row["cold"]), float(row["warm"])) > LIMIT


def print_summary(kept: list[dict[str, str]]) -> None:
    wrong = [row for row in kept if broken(row)]
    print(f"{len(kept)} commands, {len(wrong)} of them with more than {LIMIT:g} CPU seconds or without results")


if __name__ == "__main__":
    main()
