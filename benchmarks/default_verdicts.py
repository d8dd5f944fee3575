"""What comes out of every study at its default fields: the verdict, what is not supported, and what it takes.

Each study runs as `dynascope run STUDY` does, in a process of its own. Kept are the verdict and its sentence; for each
claim that is refuted or undecided, the effect with its interval; the processor minutes beside those that the study
states; and the texts of its page, which the documentation shows.

Studies that the file holds are not run again, so a run that was stopped goes on where it was. Run as
`python benchmarks/default_verdicts.py [--file FILE] [--only STUDY …]`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from resumable import keep, rows

from dynascope.results import Result
from dynascope.results.store import load
from dynascope.studies import find_study, study_index

FILE = Path(__file__).parent.parent / "docs" / "concepts" / "default_verdicts.csv"
COLUMNS = ("study", "verdict", "in words", "not supported", "minutes stated", "minutes taken", "meaning", "figures")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--only", nargs="*", default=list(study_index()))
    asked = parser.parse_args()
    kept = {row["study"] for row in rows(asked.file)}
    for name in asked.only:
        if name not in kept:
            keep(asked.file, found(name), COLUMNS, shown=("study", "verdict", "minutes taken"))


def found(name: str) -> dict[str, Any]:
    """One study."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "dynascope", "run", name, "--json", "--out", folder]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        answer = json.loads(run.stdout)
        if "error" in answer:
            raise RuntimeError(answer["error"]["message"])
        tree = load(Path(folder) / Path(answer["record"]).name)
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
