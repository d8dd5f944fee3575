"""The report page: a complete result as one self-contained HTML page.

The page contains its scripts, styles and images. Its content security policy blocks all requests and all scripts except
two, identified by their hashes, so that no text in a record can access the network or run code.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import math
import os
import re
from collections.abc import Collection, Mapping
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from latex2mathml.converter import convert
from markupsafe import Markup, escape

from dynascope.comparison.verdict import HEADINGS, Row, quantity_rows, reasons_of
from dynascope.report.bibliography import bibtex
from dynascope.report.facts import (
    confidence_of,
    facts_of,
    how_it_was_done,
    parameters_of,
)
from dynascope.report.formatting import measured, printed
from dynascope.report.page_figures import page_figures
from dynascope.report.patterns import patterns
from dynascope.report.staircase_text import predicted_jumps_sentence, staircase_meaning, staircase_question
from dynascope.results import Claim, Quantity, Result, from_tree, staircase_names
from dynascope.results.numbers import number, signed_percent
from dynascope.results.staircase_view import counted_words
from dynascope.results.tree import AnyResult
from dynascope.results.whole_files import written_beside
from dynascope.validation import require

__all__ = ["render_page", "write_page"]

_FEW = 3  # claims listed next to the verdict
_MOST_BYTES = 1_500_000
_TEXT = 60_000  # bytes reserved for text, tables and styles
_GENERATOR, _START = b'<meta name="generator" content="dynascope', 2000  # the marker of a page, within its first bytes
_VERDICTS = {
    **HEADINGS,
    "prediction": "Prediction only",
    "observation": "Observation only",
    "open": "Not compared",
}
_SENTENCES = {
    "prediction": "Nothing was trained; this page shows the prediction of the theory.",
    "observation": "This page shows measurements of a training run, without a prediction.",
}


class _Quantities(NamedTuple):
    """Rows of a table, the letter that labels each reason, and whether any row has a largest error along a curve."""

    rows: list[Row]
    reasons: dict[str, str]
    largest: bool

    @classmethod
    def of(cls, quantities: Mapping[str, Quantity], view: Result) -> _Quantities:
        rows = quantity_rows(quantities, view)
        return cls(rows, reasons_of(rows), any(row.largest is not None for row in rows))


def render_page(tree: AnyResult) -> str:
    """Render the report as HTML: question, verdict, figures, methods, tables and reference.

    Args:
        tree: The result of `predict`, `observe` or `compare`, or a record. Quantities without a chart are in a
            collapsed section.

    Returns:
        A self-contained page of at most 1.5 MB, which opens without a server and makes no network requests.

    Raises:
        InputError: The result contains neither a prediction nor an observation, or a chart names a missing variable.

    Example:
        >>> from dynascope.results import make_record
        >>> page = render_page(make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]}))
        >>> page.startswith("<!doctype html>"), "Observation only" in page
        (True, True)
    """
    view = from_tree(tree)
    require(
        bool(view.sides),
        "the result contains neither a prediction nor an observation",
        argument="tree",
        remedy="pass the result of predict, observe or compare",
    )
    facts = facts_of(view)
    reference = view.reference or str(facts.get("reference", ""))
    compared, checks = (_Quantities.of(each, view) for each in (view.quantities, view.checks))
    jumps = [] if view.staircase is None else view.staircase.shown
    shown = {jump.number for jump in jumps}
    seeds = [] if view.staircase is None else [each for each in view.staircase.over_seeds if each.number in shown]
    clock = "time" if view.staircase is None else view.staircase.clock
    scripts = {"plotly": _text("plotly/plotly-basic.min.js"), "page": _text("page.js")}
    features = patterns(view)
    taken = len(scripts["plotly"]) + (0 if features is None else features.size)
    first, others = page_figures(view, max(_TEXT, _MOST_BYTES - _TEXT - taken))
    return _template().render(
        title=view.title or _title(facts),
        question=view.question or staircase_question(view, facts),
        equation=_typeset(view.equation or str(facts.get("equation", ""))),
        claim=view.claim,
        verdict=_verdict(view),
        findings=view.findings,
        lines=getattr(view, "lines", ()),  # of a diagnosis
        decisive=_decisive(view.claims.values()),
        meaning=view.meaning or staircase_meaning(view, facts),
        warnings=view.warnings,
        figures=first,
        others=others,
        features=features,
        seeds=seeds,
        count_of_seeds=1 if view.staircase is None else view.staircase.seeds,
        compared_quantities=compared,
        checks=checks,
        claims=list(view.claims.values()),
        level_unscored="" if view.residual is None else view.residual.attrs.get(staircase_names.LEVEL_UNSCORED, ""),
        confidence=confidence_of(view),
        jumps=jumps,
        unsettled=any(jump.seen is not None and not jump.seen.settled for jump in jumps),
        gathered="" if view.staircase is None else view.staircase.gathered,
        clock=clock,
        in_steps=clock == "time" and any(math.isfinite(jump.step) for jump in jumps),
        in_epochs=any(math.isfinite(jump.epoch) for jump in jumps),
        steps="" if view.staircase is None else view.staircase.record.attrs.get("steps", ""),
        compared=any(jump.seen is not None for jump in jumps),
        description=facts.get("description", []),
        done=how_it_was_done(view, facts),
        parameters=parameters_of(view, facts),
        reference=reference,
        bibtex=bibtex(reference),
        convention=facts["convention"],
        version=view.provenance.version or facts.get("version", ""),
        style=Markup(_text("page.css")),
        scripts={name: Markup(script) for name, script in scripts.items()},
        policy=_policy(scripts),
    )


def write_page(tree: AnyResult, path: str | PathLike[str]) -> Path:
    """Write the report to a file, atomically.

    Args:
        tree: As for `render_page`.
        path: The file, usually `….html`; its folder must exist.

    Returns:
        The path.

    Raises:
        InputError: As for `render_page`; or the folder does not exist, or the path exists and is not a page
            written by dynascope.

    Example:
        >>> import tempfile
        >>> from dynascope.results import make_record
        >>> record = make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_page(record, f"{folder}/run.html").read_text()[:15]
        '<!doctype html>'
    """
    require(
        not os.path.lexists(path) or _is_page(Path(path)),
        f"{str(path)!r} exists and was not written by dynascope",
        argument="path",
        value=str(path),
        remedy="choose another path, or move the existing file first",
    )
    with written_beside(path) as partial:
        partial.write_text(render_page(tree), encoding="utf-8", newline="\n")
    return Path(path)


def _is_page(path: Path) -> bool:
    """Whether the file is a page written by dynascope, or empty."""
    if path.is_dir():
        return True  # rejected when the page is written
    try:
        with path.open("rb") as file:
            start = file.read(_START)
    except FileNotFoundError:  # a dangling link
        return True
    return not start or _GENERATOR in start


def _title(facts: Mapping[Any, Any]) -> str:
    parts = [str(facts[name]) for name in ("network", "task") if facts.get(name)]
    return " on ".join(parts) or "Learning dynamics"


def _typeset(equation: str) -> Markup:
    """Convert a LaTeX equation to MathML, or escape it as plain text if it is not valid LaTeX."""
    if not equation:
        return Markup("")
    try:
        # The converter does not escape special characters.
        return Markup(convert(equation.replace("<", r"\lt ").replace(">", r"\gt "), display="block"))
    except Exception:  # the converter raises unrelated errors without a common base class
        return escape(equation)


def _verdict(view: Result) -> dict[str, str]:
    if view.findings and view.verdict is None and view.predicted is None:
        return {"kind": "observation", "heading": "What to know", "sentence": ""}
    kind = "" if view.verdict is None else view.verdict.outcome
    sides = list(view.sides)
    if kind not in HEADINGS:
        kind = "open" if len(sides) == 2 else {"observed": "observation", "predicted": "prediction"}[sides[0]]
    sentence = _SENTENCES.get(kind, "") if view.verdict is None else view.verdict.sentence
    if kind == "prediction":
        sentence = f"{sentence} {predicted_jumps_sentence(view)}".strip()
    # Keep numbers on one line.
    sentence = re.sub(" (?=[×%])|(?<=×) ", "\N{NO-BREAK SPACE}", sentence)
    return {"kind": kind, "heading": _VERDICTS[kind], "sentence": sentence}


def _decisive(claims: Collection[Claim]) -> list[Claim]:
    """Select the claims to list next to the verdict: all if there are few, otherwise those that do not hold."""
    deciding = [each for each in claims if each.decides]
    return deciding if len(deciding) <= _FEW else [each for each in deciding if each.outcome != "holds"][:_FEW]


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(number=number, percent=signed_percent, counted_words=counted_words, printed=printed)
    environment.filters["measured"] = measured
    return environment.from_string(_text("template.html.j2"))


@functools.cache
def _text(name: str) -> str:
    return files("dynascope.report").joinpath(name).read_text("utf-8")


def _policy(scripts: Mapping[str, str]) -> str:
    """Return a content security policy that allows only the scripts of the page, and no requests."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts.values()]
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"
