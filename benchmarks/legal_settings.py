"""Every study at random legal settings: verdicts, and how much of its tolerance the worst quantity takes.

A study is to say "disagree" only where theory and training differ, wherever its fields take it. The settings are drawn
by seed around its small ones (`Study.tiny`), field by field, and a value that the study refuses is drawn again. The
first draws vary numbers alone, the others also sizes and choices. A draw that takes too long, or whose run is refused,
is followed by another that stays closer to the small settings. Of what agrees it is also told whether the verdict turns
with all that is predicted halved or doubled.

Rows that the file holds are not computed again, so a run that was stopped goes on where it was. Run as
`python benchmarks/legal_settings.py [--file FILE] [--limit SECONDS] [--only STUDY …]`.
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
VALUES_ALONE = 4  # first draws, which keep sizes and choices, and with them the compiled programs
CLOSER = 10  # added to the number of a draw that takes the place of another
REACH = {"scale": 100.0, "number": 2.0, "count": 1.5}  # how far, as a factor up or down
TRIES = 12  # values of one field, until it keeps the one that it has
SCALES = ("scale", "initial_strength", "initial_size", "random_scale")  # of small starts, a matter of powers of ten

# Fields whose values neither a number nor a list of options says, and what would take minutes at any size.
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
    asked = parser.parse_args()
    worker = Worker(asked.limit)
    for name in asked.only:
        while (draw := following(rows(asked.file), name, DRAWS)) is not None:
            keep(asked.file, worker.found(name, draw), COLUMNS, shown=COLUMNS[:-2])
    worker.end()
    told(rows(asked.file))


def following(kept: Sequence[Mapping[str, str]], name: str, draws: int) -> int | None:
    """The number of the next draw of a study, or nothing if all are there."""
    verdicts = {int(row["draw"]): row["verdict"] for row in kept if row["study"] == name}
    wanted = [*range(draws), *(CLOSER + draw for draw in range(draws) if verdicts.get(draw) in ("refused", "too long"))]
    return next((draw for draw in wanted if draw not in verdicts), None)


def quick(kept: Sequence[Mapping[str, str]], name: str, count: int = 2) -> list[int]:
    """The draws of a study with a verdict that took least, of those that keep the sizes of its small settings."""
    mine = [row for row in kept if row["study"] == name and not VALUES_ALONE <= int(row["draw"]) < CLOSER]
    judged = [row for row in mine if row["verdict"] in ("agree", "undecided")]
    return [int(row["draw"]) for row in sorted(judged, key=lambda row: float(row["seconds"]))[:count]]


class Worker:
    """A process that runs settings and is ended where one takes too long."""

    def __init__(self, limit: float):
        self._limit, self._pool = limit, None

    def found(self, name: str, draw: int) -> dict[str, Any]:
        """One row."""
        self._pool = self._pool or multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=DRAWS)
        try:
            return self._pool.apply_async(found, (name, draw)).get(timeout=self._limit)
        except multiprocessing.TimeoutError:
            self.end()
            row = {"study": name, "draw": draw, "settings": told_settings(settings(name, draw))}
            return row | {"verdict": "too long", "seconds": f"{self._limit:.1f}"}

    def end(self) -> None:
        """End the process; the next settings start another."""
        if self._pool is not None:
            self._pool.terminate()
        self._pool = None


def found(name: str, draw: int) -> dict[str, Any]:
    """What a study says at one of its settings."""
    study = settings(name, draw)
    row, start = {"study": name, "draw": draw, "settings": told_settings(study)}, time.perf_counter()
    try:
        said = outcome(study)
    except InputError as refusal:
        said = {"verdict": "refused", "remark": str(refusal)}
    except DivergenceError as divergence:
        said = {"verdict": "diverged", "remark": str(divergence)}
    except Exception as error:
        said = {"verdict": "failed", "remark": f"{type(error).__name__}: {error}"}
    return row | said | {"seconds": f"{time.perf_counter() - start:.1f}"}


def outcome(study: Study) -> dict[str, Any]:
    """The verdict, and the quantity that takes the largest share of its tolerance."""
    tree = study.run()
    verdict = tree.verdict.outcome
    checks = tree.checks
    if not all(each.agrees for each in checks.values()):
        return {"verdict": "failed", "remark": tree.verdict.sentence}
    compared = tree.quantities
    shares = {name: share(each) for name, each in compared.items() if np.isfinite(each.error)}
    worst = max(shares, key=shares.__getitem__, default="")
    # What is reported of a claim may be unknown.
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
    """An error over its tolerance."""
    error, tolerance = compared.error, compared.tolerance
    return error / tolerance if tolerance else np.inf if error else 0.0


def turns(study: Study, tree: Comparison) -> str:
    """Whether the verdict turns with all that is predicted halved or doubled; nothing where claims alone decide."""
    predicted, observed = tree.predicted, tree.observed
    compared = {name.removesuffix("_maximum") for name in tree.quantities}
    times = {"jump_time", "accelerated_time"} if {"jump_time", "slope"} & compared else compared
    judged = times & set(predicted.data_vars)
    if not judged:
        return ""
    wrong = (predicted.assign({name: by * predicted[name] for name in judged}) for by in (0.5, 2.0))
    return "no" if any(study.compared(observed, each).verdict.outcome == "agree" for each in wrong) else "yes"


def settings(name: str, draw: int) -> Study:
    """A study at random fields, each of which it takes together with the others."""
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
    """How values of fields are drawn.

    Attributes:
        random: The generator.
        whole: Whether sizes and choices are drawn too.
        power: Of the factors by which numbers are taken up or down.
    """

    random: np.random.Generator
    whole: bool
    power: float

    def value(self, name: str, small: Any, usual: Any, options: Sequence[Any] = (), *, signed: bool = True) -> Any:
        """Another value of a field: numbers around its small or its default one, sizes around the small one."""
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
    """To three digits, as people write numbers."""
    return float(f"{value:.3g}")


def told_settings(study: Study) -> str:
    """The fields that are not the default ones."""
    usual = dataclasses.asdict(type(study)())
    return json.dumps({name: value for name, value in dataclasses.asdict(study).items() if value != usual[name]})


def told(kept: Sequence[Mapping[str, str]]) -> None:
    counts = collections.Counter(row["verdict"] for row in kept)
    print(f"{len(kept)} settings of {len({row['study'] for row in kept})} studies: {dict(counts)}")


if __name__ == "__main__":
    main()
