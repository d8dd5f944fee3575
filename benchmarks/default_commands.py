"""What `dynascope predict DATA --network KIND --check` costs at its default settings, and whether it ends with results.

Each cell is a data set and a network. Its command runs twice in processes of their own: *cold*, where no program is
compiled yet, and *warm*, where it finds those of the first. Printed and kept are the processor's seconds of both (of
all its threads), the exit code, the verdict, whether prediction, page and record are there, and what was cut short.

Cells that the file holds are not run again, so a run that was stopped goes on where it was. Run as
`python benchmarks/default_commands.py [--file FILE] [--only WORD …]`; each word is to be in the name of a cell.
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
LIMIT = 60.0  # seconds of the processor that a command may take
CUT_SHORT = ("stopped", "followed to", "could not be followed", "was over", "were spent")  # in warnings
ENDED = {0: "agree", 1: "disagree", 4: "undecided"}  # exit codes of a check that ended


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--only", nargs="*", default=[])
    asked = parser.parse_args()
    kept = {(row["data"], row["network"]) for row in rows(asked.file)}
    for cell in itertools.product(DATA, NETWORKS):
        if cell not in kept and all(word in " ".join(cell) for word in asked.only):
            keep(asked.file, found(*cell), COLUMNS)
    told(rows(asked.file))


def found(data: str, network: str) -> dict[str, Any]:
    """One cell."""
    with tempfile.TemporaryDirectory() as folder:
        file = written(DATA[data](), network, Path(folder) / "data.npz")
        cold, warm = (ran(file, network, Path(folder) / name) for name in ("first", "second"))
    return {"data": data, "network": network, "cold": cold.pop("seconds"), "warm": warm.pop("seconds")} | warm


def written(task: Task, network: str, file: Path) -> Path:
    """The data as a user has them; a diagonal network has one output."""
    outputs = task.targets[:, :1] if network == "diagonal" else task.targets
    np.savez(file, x=task.inputs, y=outputs)
    return file


def ran(file: Path, network: str, out: Path) -> dict[str, Any]:
    """One command, by what it printed, left and cost."""
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
        "page": said(out, "*.html"),
        "record": said(out, "*.zarr.zip"),
        "remark": " ".join(remarks),
    }


def said(folder: Path, pattern: str) -> str:
    return "yes" if any(folder.glob(pattern)) else "no"


def broken(row: dict[str, str]) -> bool:
    """Whether a command took too long, or ended without what it is for."""
    lacks = any(row[name] != "yes" for name in ("prediction", "page", "record"))
    return lacks or row["verdict"] == "none" or max(float(row["cold"]), float(row["warm"])) > LIMIT


def told(kept: list[dict[str, str]]) -> None:
    wrong = [row for row in kept if broken(row)]
    print(f"{len(kept)} commands, {len(wrong)} of them above {LIMIT:g} seconds or without results")


if __name__ == "__main__":
    main()
