"""Results of every study with its default settings: verdict, unsupported claims and run time.

Each study runs as `dynascope run STUDY` in a separate process. The table contains the verdict with its sentence, the
effects and intervals of refuted and undecided claims, and the stated and actual CPU minutes. It also contains the text
of the page and of its figures, which the documentation shows together with the first figure.

Run `python benchmarks/default_verdicts.py [--file FILE] [--only STUDY …]`. Studies that are already in the file are
skipped, so a stopped run can be resumed.
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
FIGURES = DOCS / "studies" / "figures"  # with another file, the folder `figures` next to it
COLUMNS = ("study", "verdict", "in words", "not supported", "minutes stated", "minutes taken", "meaning", "figures")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--only", nargs="*", default=list(study_index()))
    options = parser.parse_args()
    kept = {row["study"] for row in rows(options.file)}
    for name in options.only:
        if name not in kept:
            figures = FIGURES if options.file == FILE else options.file.parent / "figures"
            keep(options.file, found(name, figures), COLUMNS, shown=("study", "verdict", "minutes taken"))


def found(name: str, figures: Path) -> dict[str, Any]:
    """Return the row of one study, and draw its first figure."""
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
    """Draw the first figure of the page, with text as SVG text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.fonttype": "none", "path.simplify_threshold": 0.5}):
        save_figure(draw_chart(tree, dataclasses.replace(tree.charts[0], title="", caption="")), path)


def not_supported(tree: Result) -> list[str]:
    """Return the statement of each refuted or undecided claim, with its interval or the reason."""
    statements = []
    for claim in tree.claims.values():
        if claim.decides and claim.outcome != "holds":
            change, low, high = (_number(each) for each in (claim.value, *claim.interval))
            measured = claim.why_undecided or f"{low} to {high}"
            statements.append(f"{claim.outcome.capitalize()}: {claim.statement.rstrip('.')}: {change} ({measured}).")
    return statements


def _number(value: float) -> str:
    return f"{value:.3g}".replace("inf", "∞").replace("-", "−")


if __name__ == "__main__":
    main()
