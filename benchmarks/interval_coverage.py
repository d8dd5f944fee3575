"""Coverage of 95 % intervals: fitted power laws, joint laws, calibrations of skills, and effects.

Each row of the table contains 2000 draws of one design, or 300 for joint laws.

- Power law: losses 2 x^−0.35 + E at eight points per decade from x = 1000, over two or three decades. E is given as a
  share of the last loss. Each point has a scatter of 1 %. If there are several runs, each also varies by 1 % in its
  level and by another 1 % at both ends of its tilt. *Broken* first points are 20 % too high. *Delayed* losses follow a
  different law, 2 (x + 1000)^−0.35 + E. `theory.scaling_laws.fit` fits them with its defaults.
- Joint law: L = 1.69 + 406.4 N^−0.34 + 410.7 D^−0.28, on grids over three decades of N and D with a scatter of 1 %, or
  on nine curves of equal compute with a scatter of 0.4 %. Broken runs, those with the smallest D, are 7 to 28 % too
  high: one of 25, or 5 of 239. Kaplan's form, [(N_c/N)^(α_N/α_D) + D_c/D]^α_D, is a different law. A *further run* has
  ten times the largest N and D. `theory.scaling_laws.fit_joint` fits them.
- Calibration: strengths 1/(1 + exp(ln c − r T)) at 40 steps, with ln c = 8, r = 0.0225 and a scatter of 0.02 at each
  point. If there are several runs, their rates and offsets scatter by 5 %. `theory.skills.calibrate` calibrates them
  with its defaults.
- Effect: a metric at two or four levels of a factor, over seeds that vary as a whole and at each level, more at the
  higher levels. There is no effect, so an interval that excludes zero is a false positive. `Hypothesis.compare`
  computes the intervals.

Run `python benchmarks/interval_coverage.py [--file FILE] [--only WORD …] [--draws NUMBER]`. Rows that are already in
the file are skipped, so a stopped run can be resumed. `--only` selects designs whose names contain all words.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from resumable import keep, rows

from dynascope.comparison.effect import Hypothesis
from dynascope.errors import InputError
from dynascope.theory.scaling_laws import JointLaw, fit, fit_joint
from dynascope.theory.skills import calibrate

FILE = Path(__file__).parent.parent / "docs" / "concepts" / "interval_coverage.csv"
COLUMNS = ("interval of", "design", "runs", "draws", "refused", "warned", "held the truth")
DRAWS = 2000
FEWER = {"joint law": 300}
SEVERAL = (2, 3, 4, 5, 8, 16)
RATE, OFFSET = 0.0225, 8.0
EXPONENT = 0.35
JOINT = JointLaw(1.69, 406.4, 0.34, 410.7, 0.28)

Intervals = Mapping[str, tuple[tuple[float, float], float]]  # by quantity: the ends of the interval, and the true value


class Design(NamedTuple):
    """A simulation design: the function `drawn` returns the intervals of one draw."""

    subject: str
    name: str
    runs: int
    drawn: Callable[[np.random.Generator], Intervals]


def power_law(decades: int, share: float, runs: int, *, broken: int = 0, delay: float = 0.0) -> Design:
    x = np.geomspace(1e3, 10.0 ** (3 + decades), 8 * decades + 1)
    floor = share / (1 - share) * 2 * x[-1] ** -EXPONENT
    tilts = np.stack([np.ones_like(x), np.linspace(-1, 1, len(x))])

    def drawn(draw: np.random.Generator) -> Intervals:
        noise = 0.01 * draw.normal(size=(runs, len(x)))
        if runs > 1:
            noise += 0.01 * draw.normal(size=(runs, 2)) @ tilts
        noise[:, :broken] += np.log(1.2)
        found = fit((2 * (x + delay) ** -EXPONENT + floor) * np.exp(noise), x)
        return {"exponent": (found.exponent_interval, EXPONENT), "floor": (found.floor_interval, floor)}

    failure = f", first {broken} broken" * (broken > 0) + ", delayed" * (delay > 0)
    return Design("power law", f"{decades} decades, floor {share:.0%} of the last loss{failure}", runs, drawn)


def kaplan(n: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return the joint law of Kaplan et al., arXiv:2001.08361, equation 1.5, with its constants."""
    return ((8.8e13 / n) ** (0.076 / 0.095) + 5.4e13 / d) ** 0.095


def grid(sizes: int, amounts: int) -> tuple[np.ndarray, np.ndarray]:
    n, d = np.meshgrid(np.geomspace(1e6, 1e9, sizes), np.geomspace(1e8, 1e11, amounts), indexing="ij")
    return n.ravel(), d.ravel()


def isoflops() -> tuple[np.ndarray, np.ndarray]:
    """Return nine curves of equal compute, and five additional runs with little data."""
    compute = np.repeat(np.geomspace(6e18, 3e21, 9), 26)
    n = 0.2 * (compute / 6) ** 0.49 * np.tile(np.geomspace(0.15, 6, 26), 9)
    edge = np.geomspace(2e9, 7e9, 5)
    return np.append(n, edge), np.append(compute / 6 / n, 1.5e18 / edge)


def joint_law(
    name: str,
    runs: tuple[np.ndarray, np.ndarray],
    truth: Callable[[np.ndarray, np.ndarray], np.ndarray],
    *,
    scatter: float = 0.01,
    broken: int = 0,
) -> Design:
    n, d = runs
    edge = np.argsort(d, kind="stable")[:broken]
    further = 10 * n.max(), 10 * d.max()

    def drawn(draw: np.random.Generator) -> Intervals:
        losses = truth(n, d) * np.exp(scatter * draw.normal(size=n.size))
        losses[edge] *= draw.uniform(1.07, 1.28, broken)
        found = fit_joint(n, d, losses)
        forecast = found.loss(*further)
        run = float(truth(*further) * np.exp(scatter * draw.normal()))
        intervals = {"further run": ((float(forecast.low), float(forecast.high)), run)}
        if truth == JOINT.loss:
            intervals["data exponent"] = (found.data_exponent_interval, JOINT.data_exponent)
        return intervals

    return Design("joint law", name, n.size, drawn)


def calibration(runs: int) -> Design:
    steps = np.arange(0.0, 800.0, 20.0)

    def drawn(draw: np.random.Generator) -> Intervals:
        rates, offsets = (
            value * (1 + (0.05 * draw.normal(size=(runs, 1)) if runs > 1 else 0.0)) for value in (RATE, OFFSET)
        )
        strength = 1 / (1 + np.exp(offsets - rates * steps)) + 0.02 * draw.normal(size=(runs, len(steps)))
        found = calibrate(steps, strength, target_scale=0.5)
        return {"rate": (found.rate_interval, RATE), "offset": (found.offset_interval, OFFSET)}

    return Design("calibration", "strengths of one skill", runs, drawn)


def effect(levels: int, runs: int) -> Design:
    spread, claim = np.linspace(0.5, 2, levels)[:, None], Hypothesis("factor", "metric", 1)

    def drawn(draw: np.random.Generator) -> Intervals:
        result = claim.compare(draw.normal(size=runs) + spread * draw.normal(size=(levels, runs)))
        return {"effect": ((result.low, result.high), 0.0)}

    return Design("effect", f"{levels} levels", runs, drawn)


DESIGNS = [
    *(power_law(decades, share, 1) for decades in (2, 3) for share in (0.0, 0.05, 0.2, 0.4, 0.6, 0.8)),
    *(power_law(decades, 0.4, runs) for decades in (2, 3) for runs in SEVERAL),
    *(power_law(3, 0.4, 1, broken=broken) for broken in (1, 2)),
    power_law(3, 0.4, 1, delay=1e3),
    joint_law("4 × 3 runs of the law", grid(4, 3), JOINT.loss),
    joint_law("5 × 5 runs of the law", grid(5, 5), JOINT.loss),
    joint_law("5 × 5 runs, one of them broken", grid(5, 5), JOINT.loss, broken=1),
    joint_law("curves of equal compute, 5 runs broken", isoflops(), JOINT.loss, scatter=0.004, broken=5),
    joint_law("5 × 5 runs of Kaplan's form", grid(5, 5), kaplan),
    joint_law("curves of equal compute of Kaplan's form", isoflops(), kaplan, scatter=0.004),
    *(calibration(runs) for runs in (1, *SEVERAL)),
    *(effect(levels, runs) for levels in (2, 4) for runs in SEVERAL),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args()
    kept = {(row["design"], row["runs"]) for row in rows(options.file)}
    for design in DESIGNS:
        called = f"{design.subject}, {design.name}, runs {design.runs}"
        if (design.name, str(design.runs)) not in kept and all(word in called for word in options.only):
            for row in covered(design, min(options.draws, FEWER.get(design.subject, options.draws))):
                keep(options.file, row, COLUMNS)


def covered(design: Design, draws: int) -> list[dict[str, Any]]:
    """Return the rows of one design. Draws are seeded by their number, so that all designs use the same noise."""
    refused = warned = 0
    hits: dict[str, int] = {}
    for seed in range(draws):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = design.drawn(np.random.default_rng(seed))
            except InputError:
                refused += 1
                continue
        warned += bool(caught)
        for name, ((low, high), truth) in found.items():
            hits[name] = hits.get(name, 0) + (low <= truth <= high)
    counts = {"draws": draws, "refused": f"{refused / draws:.1%}", "warned": f"{warned / draws:.1%}"}
    return [
        {
            "interval of": f"{design.subject}: {name}" if name != design.subject else name,
            "design": design.name,
            "runs": design.runs,
            **counts,
            "held the truth": f"{held / (draws - refused):.1%}",
        }
        for name, held in hits.items()
    ]


if __name__ == "__main__":
    main()
