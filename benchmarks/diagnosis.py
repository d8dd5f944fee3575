"""Diagnoses of sixty runs with known conditions, for two sets of seeds.

The runs are those of `diagnosed_runs.py`, which states for each condition why it holds. Each run is recorded, and its
record is diagnosed. The diagnosis is right if the state of the line for the condition matches the truth. It abstains
if this state is "not measured", "does not apply" or "undecided". Thresholds were only adjusted to runs with the
development seeds.

Run `python benchmarks/diagnosis.py [--seeds SEEDS] [--file FILE] [--only NAME …] [--keep FOLDER]`. Runs that are
already in the file are skipped. `--only` selects runs by parts of their names, such as `clipping`, `gpt` or
`clipping-gpt-with`. `--keep` keeps the records. `--truth` verifies the truth of the runs by independent measurements
instead, without a recorder. At the end, a table with the suffix `_confusion` counts the outcomes.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import collections
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from diagnosed_runs import SEEDS, Run, runs
from diagnosed_training import Training
from diagnosed_truth import truth_of
from resumable import keep, rows

from dynascope import diagnose
from dynascope.symmetry import find_symmetries
from dynascope.torch import Recorder

FILE = Path(__file__).parents[1] / "docs" / "concepts" / "diagnosis.csv"
COLUMNS = ("seeds", "run", "condition", "truth", "architecture", "state", "outcome", "number", "seconds")
OUTCOMES = ("right", "wrong", "abstained")
ABSTENTIONS = ("not measured", "does not apply", "undecided")
REFERENCE = 256  # examples
KERNEL_EXAMPLES = 32

# Topic of the line, its states in runs with the condition, and its states in runs without it.
STATES: dict[str, tuple[str, set[str], set[str]]] = {
    "lazy": ("regime", {"lazy"}, {"rich", "delayed rich"}),
    "rich": ("regime", {"rich", "delayed rich"}, {"lazy"}),
    "unstable": ("stability", {"unstable"}, {"stable", "at the edge"}),
    "dead units": ("dead units", {"dead units"}, {"no dead units"}),
    "collapsed": ("neural collapse", {"collapsed"}, {"not collapsed"}),
    "clipping": ("conservation", {"laws broken"}, {"laws hold"}),
    "weight decay": ("weight decay", {"missing on one group"}, {"uniform"}),
    "tied weights": ("tied weights", {"copied"}, {"no copies"}),
    "label noise": ("label noise", {"noisy labels"}, {"clean labels"}),
    "memorising": ("memorisation", {"memorising"}, {"not memorising"}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", choices=SEEDS, default="development")
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--truth", action="store_true")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    known = {(row["seeds"], row["run"]) for row in rows(options.file)}
    for run in runs(options.seeds):
        if options.only and not any(f"-{word}-" in f"-{run.name}-" for word in options.only):
            continue
        if options.truth:
            print_truth(run)
        elif (options.seeds, run.name) not in known:
            keep(options.file, {"seeds": options.seeds, **diagnosed(run, options.keep)}, COLUMNS)
    if not options.truth:
        confusion(rows(options.file), options.file.with_name(f"{options.file.stem}_confusion.csv"))


def print_truth(run: Run) -> None:
    """Verify the truth of a run, and print the number that shows it."""
    started = time.perf_counter()
    truth = truth_of(run)
    seconds = f"{time.perf_counter() - started:.1f} s"
    print(f"{run.name:28} {seconds:>7} {'holds' if truth.holds else 'FAILS'} {truth.number:.3g} {truth.meaning}")


def diagnosed(run: Run, folder: Path | None) -> dict[str, Any]:
    """Record and diagnose a run, and return its row without the seeds."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        path = (folder or Path(temporary)) / f"{run.seed}-{run.name}.zarr"
        record(run, path)
        topic, with_it, without = STATES[run.condition]
        line = next(each for each in diagnose(path).lines if each.topic == topic)
    right, wrong = (with_it, without) if run.present else (without, with_it)
    if line.state not in {*right, *wrong, *ABSTENTIONS, "unstable"}:
        raise ValueError(f"the line {topic!r} has the unexpected state {line.state!r}")
    outcome = "right" if line.state in right else "abstained" if line.state in ABSTENTIONS else "wrong"
    return {
        "run": run.name,
        "condition": run.condition,
        "truth": "with" if run.present else "without",
        "architecture": run.architecture,
        "state": line.state,
        "outcome": outcome,
        "number": f"{line.number:.3g}",
        "seconds": f"{time.perf_counter() - started:.1f}",
    }


def record(run: Run, path: Path) -> None:
    """Train with a recorder."""
    training = run.training()
    recorder = Recorder(
        training.model,
        path,
        reference=(training.inputs[:REFERENCE], training.targets[:REFERENCE]),
        optimizer=training.optimizer,
        criterion=training.criterion,
        preset=["standard", "curvature", "batches"],
        charges=symmetries(run, training),
        max_overhead=None,
        kernel_examples=KERNEL_EXAMPLES,
        batch_size=training.batch or len(training.inputs),
        flipped=training.flipped[:REFERENCE] if training.flipped_known else None,
        verbose=False,
    )
    with recorder:
        run.train(training, lambda step, loss: recorder.step(loss=loss))


def symmetries(run: Run, training: Training) -> Any:
    """Return the symmetries whose charges are recorded; none for Adam, which obeys no law."""
    if not isinstance(training.optimizer, torch.optim.SGD):
        return False
    if run.architecture != "gpt":
        return find_symmetries(training.model, None, training.inputs[:REFERENCE]).symmetries or False
    # A language model takes 15 s on two windows, so its symmetries are only found where the laws are tested.
    return run.condition == "clipping" and find_symmetries(training.model, None, training.inputs[:2]).symmetries


def confusion(found: list[dict[str, str]], file: Path) -> None:
    """Write and print how often the diagnosis is right, wrong and abstains, by seeds, condition and truth."""
    counts = collections.Counter((row["seeds"], row["condition"], row["truth"], row["outcome"]) for row in found)
    lines = [["seeds", "condition", "truth", *OUTCOMES]]
    for seeds in SEEDS:
        for condition in STATES:
            for truth in ("with", "without"):
                numbers = [counts[seeds, condition, truth, outcome] for outcome in OUTCOMES]
                lines += [[seeds, condition, truth, *map(str, numbers)]] if any(numbers) else []
        totals = [sum(row["seeds"] == seeds and row["outcome"] == outcome for row in found) for outcome in OUTCOMES]
        lines += [[seeds, "all", "both", *map(str, totals)]] if any(totals) else []
    text = "\n".join(",".join(line) for line in lines) + "\n"
    file.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
