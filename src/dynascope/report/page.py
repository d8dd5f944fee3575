"""The report page: everything that a tree says, on one HTML page that needs nothing else.

The page carries its scripts, styles and pictures. Its content security policy forbids every request and every script
but the two whose hashes it names, so that no text in a record can reach the network or run.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from plotly.graph_objects import Figure
from plotly.offline import get_plotlyjs

from dynascope import plot
from dynascope.arguments import require
from dynascope.errors import InputError
from dynascope.plot import traces
from dynascope.plot.axes import is_logarithmic, is_power_law
from dynascope.plot.learned_features import MOST_PICTURES, find_features
from dynascope.plot.numbers import number, percent
from dynascope.record import CONVENTION, TreeView
from dynascope.record.tree_view import Tree
from dynascope.record.whole_files import written_beside
from dynascope.report.interactive import lines_figure, staircase_figure
from dynascope.report.wording import plain, words

__all__ = ["render_page", "write_page"]

_MOST_FIGURES = 12
_VERDICTS = {
    "agree": "Theory and experiment agree",
    "disagree": "Theory and experiment disagree",
    "prediction": "Prediction only",
    "observation": "Observation only",
    "open": "Not compared",
}
_SENTENCES = {
    "prediction": "Nothing was trained: what follows is what theory expects.",
    "observation": "No theory was asked: what follows was measured on training.",
}
_FEATURES = {
    "input_feature": "The input pattern that each jump learns",
    "coefficient": "The linear map after each jump",
}


def render_page(tree: Tree) -> str:
    """The whole report as HTML: verdict, figures, tables, treatment of the data, parameters, reference.

    Args:
        tree: What `compare` returns, or a tree or record of one side alone.

    Returns:
        A self-contained page, which opens from disk and makes no request.

    Raises:
        InputError: The tree holds neither a prediction nor an observation, or an attribute that should be JSON is not.

    Example:
        >>> from dynascope.record import make_record
        >>> page = render_page(make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]}))
        >>> page.startswith("<!doctype html>"), "Observation only" in page
        (True, True)
    """
    view = TreeView.of(tree)
    require(
        bool(view.sides),
        "the tree holds neither a prediction nor an observation",
        argument="tree",
        remedy="pass what predict, observe or compare return",
    )
    facts = {"convention": CONVENTION, **list(view.sides.values())[-1].attrs, **view.setup, **view.attributes}
    jumps = [] if view.staircase is None else view.staircase.rows
    scripts = {"plotly": get_plotlyjs(), "page": _text("page.js")}
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(number=number, percent=percent, words=words)
    return environment.from_string(_text("template.html.j2")).render(
        title=facts.get("title") or _title(facts),
        claim=facts.get("claim", ""),
        verdict=_verdict(view.attributes, list(view.sides)),
        warnings=_warnings(view),
        figures=_figures(view),
        features=_features(view),
        agreement=_json(facts, "agreement", {}),
        hypotheses=_hypotheses(view),
        jumps=jumps,
        compared=any(jump.seen is not None for jump in jumps),
        description=_json(facts, "description", []),
        parameters=_parameters(facts),
        reference=facts.get("reference", ""),
        convention=facts["convention"],
        version=facts.get("version", ""),
        style=Markup(_text("page.css")),
        scripts={name: Markup(script) for name, script in scripts.items()},
        policy=_policy(scripts),
    )


def write_page(tree: Tree, path: str | PathLike[str]) -> Path:
    """Write the report to a file, whole or not at all.

    Args:
        tree: As `render_page`.
        path: The file, by custom `….html`; its folder must exist.

    Returns:
        The path.

    Raises:
        InputError: As `render_page`; or the folder does not exist, or the path is a folder.
    """
    with written_beside(path) as partial:
        partial.write_text(render_page(tree), encoding="utf-8", newline="\n")
    return Path(path)


def _title(facts: Mapping[Any, Any]) -> str:
    parts = [str(facts[name]) for name in ("network", "task") if facts.get(name)]
    return " on ".join(parts) or "Learning dynamics"


def _verdict(attributes: Mapping[Any, Any], sides: Sequence[str]) -> dict[str, str]:
    kind = attributes.get("verdict")
    if kind not in ("agree", "disagree"):
        kind = "open" if len(sides) == 2 else {"observed": "observation", "predicted": "prediction"}[sides[0]]
    sentence = attributes.get("verdict_sentence") or _SENTENCES.get(kind, "")
    # The banner already says in its heading how such a sentence begins.
    sentence = sentence.removeprefix(f"{_VERDICTS[kind]}: ")
    sentence = sentence[:1].upper() + sentence[1:]
    return {"kind": kind, "heading": _VERDICTS[kind], "sentence": sentence}


def _warnings(view: TreeView) -> list[str]:
    found = [str(warning) for node in view.tree.subtree for warning in _json(node.attrs, "warnings", [])]
    return list(dict.fromkeys(found))


def _figures(view: TreeView) -> list[dict[str, Any]]:
    """The figures in the order in which they are told: the staircase, planes, other curves."""
    names = traces.curve_names(view)
    figures = []
    if view.staircase is not None:
        names = [name for name in names if name != "loss"]
        lines = traces.staircase(view)
        figures.append(_entry("loss", staircase_figure(lines, view.staircase.rows), lines))
    for x, y in traces.planes(view):
        lines = traces.plane(view, x, y)
        figures.append(_entry(f"{y} against {x}", lines_figure(lines, y), lines))
    for name in names:
        lines = traces.curves(view, name)
        figures.append(_entry(name, lines_figure(lines, name, log_values=is_power_law(lines)), lines))
    return figures[:_MOST_FIGURES]


def _entry(name: str, figure: Figure, lines: Sequence[traces.Trace]) -> dict[str, Any]:
    strokes = {"observed": "Solid: observed.", "predicted": "Dashed: predicted."}
    caption = " ".join(strokes[side] for side in dict.fromkeys(line.side for line in lines))
    drawn = sum(1 for _ in figure.select_traces({"mode": "lines"}))
    if drawn < len(lines):
        caption += f" Of {len(lines)} lines {drawn} are drawn."
    return {
        "name": words(name),
        "caption": caption,
        "axis": words(lines[0].axis),
        "log_axis": is_logarithmic(lines),
        "log_values": figure.layout["yaxis"]["type"] == "log",
        # No "<" leaves the JSON, so no text in it can end the script element that holds it.
        "content": Markup((figure.to_json() or "").replace("<", "\\u003c")),
    }


def _features(view: TreeView) -> dict[str, str] | None:
    found = find_features(view)
    if found is None:
        return None
    values, image_shape = found
    caption = f"{_FEATURES[str(values.name)]}. Red is positive, blue negative, white zero. "
    caption += "One scale for all." if image_shape is None else "Each picture has a scale of its own."
    if image_shape is not None and values.sizes["jump"] > MOST_PICTURES:
        caption += f" The first {MOST_PICTURES} of {values.sizes['jump']} are shown."
    drawing = plot.features(view).get_figure(root=True)
    assert drawing is not None
    picture = io.BytesIO()
    drawing.savefig(picture, format="png", dpi=160, metadata={"Software": None})
    return {"caption": caption, "source": "data:image/png;base64," + base64.b64encode(picture.getvalue()).decode()}


def _hypotheses(view: TreeView) -> list[dict[str, Any]]:
    """One row of the table for each hypothesis on which the observation reports."""
    observed = view.observed
    if observed is None or "holds" not in observed or observed["holds"].dims != ("hypothesis",):
        return []
    told = {str(name): values for name, values in observed.variables.items() if values.dims == ("hypothesis",)}
    columns = {name: values.to_numpy().tolist() for name, values in told.items()}
    common = {"confidence": observed.attrs.get("confidence", 0.95)}
    return [{**common, **dict(zip(columns, row, strict=True))} for row in zip(*columns.values(), strict=True)]


def _parameters(facts: Mapping[Any, Any]) -> dict[str, str]:
    """The parameters of the study, then what else is known of the setup."""
    parameters = _json(facts, "parameters", {})
    shown = ("task", "network", "theory", "scale", "initial_loss", "degree")
    rest = {name: facts[name] for name in shown if name in facts and name not in parameters}
    return {words(name): plain(value) for name, value in {**parameters, **rest}.items()}


def _json(attributes: Mapping[Any, Any], name: str, default: Any) -> Any:
    try:
        value = json.loads(attributes[name]) if name in attributes else default
    except (TypeError, json.JSONDecodeError):
        value = None
    if not isinstance(value, type(default)):
        raise InputError(
            f"the attribute {name!r} is not a JSON {'list' if isinstance(default, list) else 'object'}",
            argument=name,
            value=attributes[name],
            remedy="make records with make_record, which writes lists and dictionaries as JSON",
        )
    return value


def _text(name: str) -> str:
    return files("dynascope.report").joinpath(name).read_text("utf-8")


def _policy(scripts: Mapping[str, str]) -> str:
    """A content security policy under which the page can run its own scripts and can ask for nothing."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts.values()]
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"
