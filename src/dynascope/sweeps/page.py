"""The page of a sweep: maps or curves of its numbers, the best and the worst cell, and failed cells."""

from __future__ import annotations

import base64
import dataclasses
import io
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import xarray as xr
from markupsafe import Markup

from dynascope import __version__
from dynascope.report import write_page
from dynascope.results.whole_files import written_beside
from dynascope.studies import find_study, study_index
from dynascope.sweeps.figures import caption_of, draw_number
from dynascope.sweeps.folder import read_manifest
from dynascope.sweeps.measurements import CLOCKS, CURVE, SHARE
from dynascope.sweeps.study_run import StudyRun
from dynascope.sweeps.swept import Sweep
from dynascope.validation import checked

__all__ = ["write_sweep_page"]

_MOST_FIGURES, _MOST_FAILURES = 12, 20
_AGREED = "agreed"


@dataclasses.dataclass(frozen=True)
class _Extreme:
    """The best or the worst cell, and the page of its run."""

    word: str
    settings: list[Any]
    value: str
    link: str = ""


@checked
def write_sweep_page(found: Sweep, path: str | PathLike[str], *, cells: bool = True) -> Path:
    """Write the page of a sweep as one HTML file.

    Numbers are drawn as a curve over one axis, as a map over two, and as maps for each value of the third. Values are
    averaged over the axis `seed`.

    Args:
        found: The sweep.
        path: The file; its folder must exist.
        cells: Whether to run the best and the worst cell of a study again, and to write their pages next to this one.

    Returns:
        The path.

    Raises:
        InputError: The folder of the path does not exist.

    Example:
        >>> import tempfile
        >>> from dynascope.sweeps import sweep
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     s = sweep(lambda rate: rate**2, over={"rate": [1.0, 2.0]}, out=f"{folder}/s", workers=0)
        ...     write_sweep_page(s, f"{folder}/s.html").read_text()[:15]
        '<!doctype html>'
    """
    path = Path(path)
    numbers, figures, constant, omitted = _drawn_numbers(found), [], {}, []
    for name, values in numbers.items():
        finite = values.to_numpy()[np.isfinite(values.to_numpy())]
        if finite.size and finite.min() == finite.max():
            constant[name] = f"{finite[0]:.3g}"
            continue
        figure = draw_number(values) if len(figures) < _MOST_FIGURES else None
        if figure is None:
            omitted.append(name)
            continue
        words = values.attrs.get("long_name", name)
        title = f"{words[:1].upper()}{words[1:]}"
        figures.append({"title": title, "caption": caption_of(values), "source": _svg(figure)})
    failures = found.failures()
    measure, extremes = _extremes(found, path if cells else None)
    text = _template().render(
        title=f"Sweep of {found.name}",
        summary=_summary(found),
        figures=figures,
        constant=[f"{name} = {value}" for name, value in constant.items()],
        omitted=omitted,
        axes=found.axes,
        measure=measure,
        extremes=extremes,
        failures=failures.head(_MOST_FAILURES).to_numpy().tolist(),
        more_failures=max(0, len(failures) - _MOST_FAILURES),
        facts=_facts(found),
        version=__version__,
        style=Markup(files("dynascope.report").joinpath("page.css").read_text("utf-8")),
    )
    with written_beside(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return path


def _drawn_numbers(found: Sweep) -> dict[str, xr.DataArray]:
    """Agreement and the largest error of a study, then numbers and the ends of curves, and then all errors."""
    record = found.record
    first, middle, rest = {}, {}, {}
    if "verdict" in record:
        agreed = (record["verdict"] == "agree").astype(float).where(record["status"] == "done")
        first[_AGREED] = agreed.assign_attrs(long_name="fraction of cells with the verdict agree", units="1")
    for name in found.numbers:
        if not name.startswith("count_"):
            part = first if name == SHARE else rest if name.startswith(("error_", "claim_")) else middle
            part[name] = record[name]
    return {**first, **middle, **_ends_of_curves(found), **rest}


def _ends_of_curves(found: Sweep) -> dict[str, xr.DataArray]:
    """The last value of each curve."""
    ends = {}
    for name, values in found.record.data_vars.items():
        if values.dims == (*found.axes, CURVE) and name not in CLOCKS:
            words = f"{values.attrs.get('long_name', name)}, at the end"
            ends[f"{name} at the end"] = values.isel({CURVE: -1}, drop=True).assign_attrs(long_name=words)
    return ends


def _extremes(found: Sweep, page: Path | None) -> tuple[str, list[_Extreme]]:
    """The cells with the smallest and the largest error of a study; without a study, there are no pages to link."""
    if SHARE not in found.record or not np.isfinite(found.record[SHARE].to_numpy()).any():
        return "", []
    shares = found.record[SHARE]
    extremes = []
    for word, place in (("best", shares.argmin(...)), ("worst", shares.argmax(...))):
        cell = shares.isel(place)
        settings = {name: cell[name].item() for name in found.axes}
        link = ""
        if page is not None and found.name in study_index():
            run = StudyRun(find_study(found.name), found.run["fields"])
            target = page.with_name(f"{page.stem}-{word}.html")
            link = write_page(run.instance(settings).run(), target).name
        extremes.append(_Extreme(word, list(settings.values()), f"{cell.item():.3g}", link))
    return "largest error in units of its tolerance", extremes


def _summary(found: Sweep) -> str:
    axes = [f"{found.record.sizes[name]} values of {name}" for name in found.axes]
    counts = ", ".join(f"{count} {status}" for status, count in found.counts.items())
    words = f"{axes[0]}" if len(axes) == 1 else f"{', '.join(axes[:-1])} and {axes[-1]}"
    return f"{words}. Cells: {counts}."


def _facts(found: Sweep) -> list[tuple[str, str]]:
    manifest = read_manifest(found.path)
    seconds = found.record["seconds"].to_numpy() if "seconds" in found.record else np.array([np.nan])
    total = float(np.nansum(seconds))
    fields = ", ".join(f"{name} = {value}" for name, value in found.run.get("fields", {}).items())
    return [
        ("Fixed arguments", fields or "defaults"),
        ("Time of all cells", f"{total:.3g} s"),
        ("Version", str(found.run.get("version", ""))),
        ("Machine", ", ".join(f"{name} {value}" for name, value in manifest["machine"].items())),
        ("Started", manifest["created"]),
        ("Folder", str(found.path)),
    ]


def _svg(figure: Any) -> str:
    content = io.BytesIO()
    figure.savefig(content, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(content.getvalue()).decode()}"


def _template() -> jinja2.Template:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.from_string(files("dynascope.sweeps").joinpath("page.html.j2").read_text("utf-8"))
