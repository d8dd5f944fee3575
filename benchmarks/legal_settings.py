"""Verdicts of every study at random valid settings, and the largest ratio of an error to its tolerance.

A study should report "disagree" only if theory and training differ, for any values of its fields. Settings are drawn by
seed around the small ones (`Study.tiny`), field by field; a value that the study rejects is drawn again. The first
draws vary only numbers, and the others also sizes and choices. A draw that takes too long, or whose run is rejected, is
followed by another one closer to the small settings. For each agreement, the table states whether the verdict changes
if all predicted values are halved or doubled.

Run `python benchmarks/legal_settings.py [--file FILE] [--limit SECONDS] [--only STUDY …]`. Rows that are already in the
file are skipped, so a stopped run can be resumed.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import multiprocessing
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from resumable import keep, rows

from dynascope.errors import DivergenceError, InputError
from dynascope.results import Comparison, Quantity
from dynascope.studies import Study, find_study, study_index

FILE = Path(__file__).parent.parent / "docs" / "concepts" / "legal_settings.csv"
COLUMNS: tuple[str, ...] = ("study", "draw", "verdict", "quantity", "share", "turns", "seconds", "settings", "remark")
DRAWS = 10
VALUES_ALONE = 4  # first draws, which keep sizes and choices and thus reuse compiled programs
CLOSER = 10  # added to the number of a draw that replaces another
REACH = {"scale": 100.0, "number": 2.0, "count": 1.5}  # largest factor up or down
TRIES = 12  # attempts per field, after which its value stays unchanged
SCALES = ("scale", "initial_strength", "initial_size", "random_scale")  # initial scales, which vary over powers of ten

# Fields without a numerical value or a list of options, and fields that would take minutes at any size.
OFFERED: Mapping[str, Sequence[Any]] = {
    "context_length": (4.0, 10.0, 31.0, float("inf")),
    "group": ("C2", "C3", "C4", "C5", "D3", "D4", "Q8"),
    "networks": (),
    "paper": (False,),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--only", nargs="*", default=list(study_index()))
    options = parser.parse_args()
    worker = Worker(options.limit)
    for name in options.only:
        while (draw := following(rows(options.file), name, DRAWS)) is not None:
            keep(options.file, worker.found(name, draw), COLUMNS, shown=COLUMNS[:-2])
    worker.end()
    print_summary(rows(options.file))


def following(kept: Sequence[Mapping[str, str]], name: str, draws: int) -> int | None:
    """Return the number of the next draw of a study, or None if all draws are complete."""
    verdicts = {int(row["draw"]): row["verdict"] for row in kept if row["study"] == name}
    wanted = [*range(draws), *(CLOSER + draw for draw in range(draws) if verdicts.get(draw) in ("refused", "too long"))]
    return next((draw for draw in wanted if draw not in verdicts), None)


def quick(kept: Sequence[Mapping[str, str]], name: str, count: int = 2) -> list[int]:
    """Return the fastest draws of a study with a verdict, among those with the sizes of its small settings."""
    mine = [row for row in kept if row["study"] == name and not VALUES_ALONE <= int(row["draw"]) < CLOSER]
    decided = [row for row in mine if row["verdict"] in ("agree", "undecided")]
    return [int(row["draw"]) for row in sorted(decided, key=lambda row: float(row["seconds"]))[:count]]


class Worker:
    """A process that runs settings and is terminated if they take too long."""

    def __init__(self, limit: float):
        self._limit, self._pool = limit, None

    def found(self, name: str, draw: int) -> dict[str, Any]:
        """Return one row."""
        self._pool = self._pool or multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=DRAWS)
        try:
            return self._pool.apply_async(found, (name, draw)).get(timeout=self._limit)
        except multiprocessing.TimeoutError:
            self.end()
            row = {"study": name, "draw": draw, "settings": changed_settings(settings(name, draw))}
            return row | {"verdict": "too long", "seconds": f"{self._limit:.1f}"}

    def end(self) -> None:
        """Terminate the process; the next settings start another."""
        if self._pool is not None:
            self._pool.terminate()
        self._pool = None


def found(name: str, draw: int) -> dict[str, Any]:
    """Return the result of a study at one of its settings."""
    study = settings(name, draw)
    row, start = {"study": name, "draw": draw, "settings": changed_settings(study)}, time.perf_counter()
    try:
        result = outcome(study)
    except InputError as refusal:
        result = {"verdict": "refused", "remark": str(refusal)}
    except DivergenceError as divergence:
        result = {"verdict": "diverged", "remark": str(divergence)}
    except Exception as error:
        result = {"verdict": "failed", "remark": f"{type(error).__name__}: {error}"}
    return row | result | {"seconds": f"{time.perf_counter() - start:.1f}"}


def outcome(study: Study) -> dict[str, Any]:
    """Return the verdict, and the quantity with the largest ratio of error to tolerance."""
    tree = study.run()
    verdict = tree.verdict.outcome
    checks = tree.checks
    if not all(each.agrees for each in checks.values()):
        return {"verdict": "failed", "remark": tree.verdict.sentence}
    compared = tree.quantities
    shares = {name: share(each) for name, each in compared.items() if np.isfinite(each.error)}
    worst = max(shares, key=shares.__getitem__, default="")
    # The values of a claim may be unknown.
    measured = tree.observed.drop_dims("hypothesis", errors="ignore")
    missing = [name for name, each in measured.items() if each.dtype.kind == "f" and bool(np.isnan(each).any())]
    remark = "" if verdict == "agree" else tree.verdict.sentence
    return {
        "verdict": verdict,
        "quantity": worst,
        "share": f"{shares[worst]:.2g}" if worst else "",
        "turns": turns(study, tree) if verdict == "agree" else "",
        "remark": f"{remark} NaN: {', '.join(map(str, missing))}".strip() if missing else remark,
    }


def share(compared: Quantity) -> float:
    """Return the ratio of an error to its tolerance."""
    error, tolerance = compared.error, compared.tolerance
    return error / tolerance if tolerance else np.inf if error else 0.0


def turns(study: Study, tree: Comparison) -> str:
    """Return whether the verdict changes if all predicted values are halved or doubled.

    The result is empty if only claims decide the verdict.
    """
    predicted, observed = tree.predicted, tree.observed
    compared = {name.removesuffix("_maximum") for name in tree.quantities}
    times = {"jump_time", "accelerated_time"} if {"jump_time", "slope"} & compared else compared
    scored = times & set(predicted.data_vars)
    if not scored:
        return ""
    wrong = (predicted.assign({name: by * predicted[name] for name in scored}) for by in (0.5, 2.0))
    return "no" if any(study.compared(observed, each).verdict.outcome == "agree" for each in wrong) else "yes"


def settings(name: str, draw: int) -> Study:
    """Return a study with random fields, each of which it accepts together with the others."""
    kind, random = find_study(name), np.random.default_rng([zlib.crc32(name.encode()), draw])
    usual, study = kind(), kind(**kind.tiny)
    drawing = Drawing(random, whole=VALUES_ALONE <= draw < CLOSER, power=0.5 if draw >= CLOSER else 1.0)
    fields = dataclasses.fields(kind)
    for place in random.permutation(len(fields)):
        field = fields[place]
        options = OFFERED.get(field.name, field.metadata.get("options", ()))
        for _ in range(TRIES):
            value = drawing.value(field.name, getattr(study, field.name), getattr(usual, field.name), options)
            try:
                study = dataclasses.replace(study, **{field.name: value})
                break
            except InputError:
                continue
    return study


class Drawing(NamedTuple):
    """Random values of fields.

    Attributes:
        random: The generator.
        whole: Whether sizes and choices are drawn, too.
        power: Exponent of the random factors on numbers.
    """

    random: np.random.Generator
    whole: bool
    power: float

    def value(self, name: str, small: Any, usual: Any, options: Sequence[Any] = (), *, signed: bool = True) -> Any:
        """Return a random value of a field.

        Numbers are close to the value in the small or the default settings, and sizes close to the value in the small
        settings.
        """
        if name == "seed":
            return int(self.random.integers(100))
        if options:
            return self._chosen(small, options) if self.whole else small
        if isinstance(small, list):
            return [self.value(name, each, each, signed=False) for each in small]
        if isinstance(small, int):
            return round(small * self._factor("count")) if self.whole else small
        if not isinstance(small, float):
            return small
        middle = self._one_of([small, usual]) or 0.0
        if middle == 0:
            return _rounded(self.random.uniform(-1, 1))
        sign = -1 if signed and self.random.random() < 0.25 else 1
        return _rounded(sign * middle * self._factor("scale" if name in SCALES else "number"))

    def _chosen(self, small: Any, options: Sequence[Any]) -> Any:
        several = isinstance(small, list)
        return [each for each in options if self.random.random() < 0.5] if several else self._one_of(options)

    def _one_of(self, options: Sequence[Any]) -> Any:
        return options[self.random.integers(len(options))]

    def _factor(self, kind: str) -> float:
        return REACH[kind] ** (self.power * self.random.uniform(-1, 1))


def _rounded(value: float) -> float:
    """Round to three significant digits."""
    return float(f"{value:.3g}")


def changed_settings(study: Study) -> str:
    """Return the fields that differ from the default ones, as JSON."""
    usual = dataclasses.asdict(type(study)())
    return json.dumps({name: value for name, value in dataclasses.asdict(study).items() if value != usual[name]})


def print_summary(kept: Sequence[Mapping[str, str]]) -> None:
    counts = collections.Counter(row["verdict"] for row in kept)
    print(f"{len(kept)} settings of {len({row['study'] for row in kept})} studies: {dict(counts)}")


if __name__ == "__main__":
    main()
