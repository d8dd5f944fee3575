"""What comes out of every study at its default fields: the verdict, what is not supported, and what it takes.

Each study runs as `dynascope run STUDY` does, in a process of its own. Kept are the verdict and its sentence; for each
claim that is refuted or undecided, the effect with its interval; the processor minutes beside those that the study
states; and the texts of its page and its first figure, which the documentation shows.

Studies that the file holds are not run again, so a run that was stopped goes on where it was. Run as
`python benchmarks/default_verdicts.py [--file FILE] [--only STUDY …]`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib
from resumable import keep, rows

from dynascope.plot.figures import draw_chart, save_figure
from dynascope.results import Result
from dynascope.results.store import load
from dynascope.studies import find_study, study_index

DOCS = Path(__file__).parent.parent / "docs"
FILE = DOCS / "concepts" / "default_verdicts.csv"
FIGURES = DOCS / "studies" / "figures"  # those beside another file are written into a folder beside it
COLUMNS = ("study", "verdict", "in words", "not supported", "minutes stated", "minutes taken", "meaning", "figures")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--only", nargs="*", default=list(study_index()))
    asked = parser.parse_args()
    kept = {row["study"] for row in rows(asked.file)}
    for name in asked.only:
        if name not in kept:
            figures = FIGURES if asked.file == FILE else asked.file.parent / "figures"
            keep(asked.file, found(name, figures), COLUMNS, shown=("study", "verdict", "minutes taken"))


def found(name: str, figures: Path) -> dict[str, Any]:
    """One study."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "dynascope", "run", name, "--json", "--out", folder]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        answer = json.loads(run.stdout)
        if "error" in answer:
            raise RuntimeError(answer["error"]["message"])
        tree = load(Path(folder) / Path(answer["record"]).name)
    draw_first(tree, figures / f"{name}.svg")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "study": name,
        "verdict": answer["verdict"],
        "in words": tree.verdict.sentence,
        "not supported": "\n".join(not_supported(tree)),
        "minutes stated": find_study(name).minutes,
        "minutes taken": f"{seconds / 60:.2f}",
        "meaning": tree.meaning,
        "figures": "\n".join(f"**{each.title}.** {each.caption}" for each in tree.charts),
    }


def draw_first(tree: Result, path: Path) -> None:
    """Draw the first figure of the page, with its text as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.fonttype": "none", "path.simplify_threshold": 0.5}):
        save_figure(draw_chart(tree, dataclasses.replace(tree.charts[0], title="", caption="")), path)


def not_supported(tree: Result) -> list[str]:
    """The statement of each claim that does not hold or is undecided, with its interval or the reason."""
    told = []
    for claim in tree.claims.values():
        if claim.decides and claim.outcome != "holds":
            change, low, high = (_number(each) for each in (claim.value, *claim.interval))
            measured = claim.why_undecided or f"{low} to {high}"
            told.append(f"{claim.outcome.capitalize()}: {claim.statement.rstrip('.')}: {change} ({measured}).")
    return told


def _number(value: float) -> str:
    return f"{value:.3g}".replace("inf", "∞").replace("-", "−")


if __name__ == "__main__":
    main()
