"""A page for each study and an index of them, written before Sphinx builds, or by `python docs/study_pages.py`.

They are plain Markdown and kept with the sources, so that they can be read where these are shown.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import xarray as xr

from dynascope.errors import InputError
from dynascope.plot import fill_caption
from dynascope.report.bibliography import bibtex
from dynascope.report.formatting import plain
from dynascope.results import Chart, describe, from_attributes
from dynascope.results.numbers import number
from dynascope.studies import Study, StudyEntry, fields, find_study, study_index

DOCS = Path(__file__).parent
FOLDER = DOCS / "studies"
README = DOCS.parent / "README.md"
NO_BREAK = "\N{NO-BREAK SPACE}"
QUESTIONS = "## Find your question"  # the part of the README that sorts the studies


def setup(app: Any) -> dict[str, bool]:
    """Take part in a build of Sphinx."""
    app.connect("builder-inited", lambda _: write())
    return {"parallel_read_safe": True}


def write() -> None:
    """Bring the folder up to date; what is as it should be is not touched."""
    FOLDER.mkdir(exist_ok=True)
    wanted = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = FOLDER / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, encoding="utf-8", newline="\n")


def pages() -> dict[str, str]:
    """Text by name of the file."""
    entries = [entry for entry in study_index().values() if entry.module.startswith("dynascope.")]
    return {"index.md": _index(entries)} | {f"{each.name}.md": _page(each, find_study(each.name)) for each in entries}


def without_results(template: str, parameters: str) -> str:
    """What a text says before there is a result: sentences and clauses that name its numbers are left out.

    Args:
        template: The text, as `fill_caption` takes it.
        parameters: The parameters of the study as JSON, which are known.

    Example:
        >>> without_results("It has {parameters.width} neurons; loss {observed.loss:last}. So be it.", '{"width": 5}')
        'It has 5 neurons. So be it.'
    """
    known = xr.Dataset(attrs={"parameters": parameters})
    said = []
    for sentence in re.split(r"(?<=[.?!]) (?=\S)", template):
        clauses = (_filled(clause, known) for clause in re.split("(?<=[;:]) ", sentence))
        if kept := " ".join(itertools.takewhile(bool, clauses)):
            said.append(kept.rstrip(".?!;:") + sentence[-1])
    return " ".join(said)


def _filled(text: str, known: xr.Dataset) -> str:
    try:
        return fill_caption(text, known)
    except InputError:
        return ""


def _index(entries: list[StudyEntry]) -> str:
    questions = README.read_text("utf-8").partition(f"{QUESTIONS}\n")[2].partition("\n## ")[0].strip()
    questions = questions.replace("](docs/studies/", "](").replace("](docs/", "](../")
    return _joined(
        "# Studies",
        "A study puts a published claim to the test: the same quantities from theory and from training, and a verdict.",
        f"## By question\n\n{questions}",
        "## By subject",
        *_by_subject(entries),
        "```{toctree}\n:hidden:\n:glob:\n\n*\n```",
    )


def _by_subject(entries: list[StudyEntry]) -> Iterator[str]:
    ordered = sorted(entries, key=lambda entry: (entry.subject, entry.name))
    for subject, group in itertools.groupby(ordered, key=lambda entry: entry.subject):
        rows = [(f"[`{each.name}`]({each.name}.md)", each.summary, _duration(each.minutes)) for each in group]
        yield f"### {subject.capitalize()}\n\n" + _table(("study", "what it shows", "time"), rows)


def _page(entry: StudyEntry, study: type[Study]) -> str:
    usual, reference = study(), study.reference
    said = usual.attributes()
    parameters, question = said["parameters"], said.get("question")
    source = f"../../src/{entry.module.replace('.', '/')}.py"
    charts = from_attributes(said.get("figures", []))
    figures = [f"{i}. {_figure(chart, parameters, study.names)}" for i, chart in enumerate(charts, start=1)]
    meaning = without_results(said.get("meaning", ""), parameters)
    return _joined(
        f"# {entry.name}",
        f"**{question or entry.summary}**",
        entry.summary if question else "",
        f"What is claimed: {reference.claim}",
        *_commands(usual),
        "## What is done",
        _prose(inspect.getdoc(study) or ""),
        f"## What it means\n\n{meaning}" if meaning else "",
        "## What its page shows\n\n" + "\n".join(figures) if figures else "",
        "## Fields\n\nEach is an option of the command, a list as in `--name 1 2 3`, and an argument in Python.",
        _table(("field", "default", "what it is"), list(_fields(usual))),
        "## When theory and experiment agree",
        _tolerances(study),
        "## Paper",
        f"{reference.paper}. [arXiv {reference.arxiv}](https://arxiv.org/abs/{reference.arxiv})",
        f"```bibtex\n{bibtex(f'{reference.paper} (arXiv {reference.arxiv})')}\n```",
        f"[The source of the study]({source}) is `{entry.module}.{entry.class_name}`.",
    )


def _figure(chart: Chart, parameters: str, names: Mapping[str, tuple[str, str]]) -> str:
    drawn = ", ".join(chart.words or [describe(name, names)[0] for name in chart.variables])
    title = chart.title or f"{drawn[:1].upper()}{drawn[1:]} over {describe(chart.over, names)[0]}"
    ended = title if title.endswith((".", "?", "!")) else f"{title}."
    return f"**{ended}** {without_results(chart.caption, parameters)}".rstrip()


def _commands(usual: Study) -> Iterator[str]:
    yield f"    dynascope run {usual.name}"
    yield f"It takes {_duration(usual.minutes)} on two cores, prints the verdict and leaves a page and a record."
    if usual.tiny and usual.minutes >= 0.5:
        command = type(usual)(**usual.tiny).attributes()["command"]
        options = re.sub(" (?!--)", NO_BREAK, command)
        lines = textwrap.wrap(options, 78, break_long_words=False, break_on_hyphens=False, subsequent_indent=" " * 8)
        yield "The same claim on a smaller scale, in seconds:\n\n    " + " \\\n    ".join(lines).replace(NO_BREAK, " ")


def _fields(usual: Study) -> Iterator[tuple[str, str, str]]:
    hints, stand_ins = get_type_hints(type(usual)), fields.stand_ins(usual)
    for field in dataclasses.fields(usual):
        default = getattr(usual, field.name)
        listed = isinstance(default, list) and default
        value = " ".join(map(str, default)) if listed else stand_ins.get(field.name) or plain(default)
        description = field.metadata["description"]
        options = [str(each) for each in get_args(hints[field.name]) if get_origin(hints[field.name]) is Literal]
        if not all(option in description for option in options):
            description += f" One of {', '.join(options)}."
        yield f"`--{field.name.replace('_', '-')}`", value, description


def _tolerances(study: type[Study]) -> str:
    """A row for each quantity; the same limit at the worst place of a curve, and the same reason, are said once."""
    limits = study.tolerance
    if not limits:
        return (
            "Levels, times and slopes of the jumps are judged, and whether all were seen, within what theory states "
            "for the scale: [What is judged](../concepts/conventions.md#what-is-judged)."
        )
    worst = {f"{name}_maximum" for name, limit in limits.items() if limits.get(f"{name}_maximum") == limit}
    rows, before = [], ""
    for name, (limit, reason) in limits.items():
        if name not in worst:
            told = "as above" if reason == before else reason
            rows.append((f"`{name}`", describe(name, study.names)[0], number(limit), told))
            before = reason
    table = _table(("quantity", "in words", "error at most", "why"), rows)
    return _joined("Of a curve the error as a whole and the largest are judged." if worst else "", table).strip()


def _duration(minutes: float) -> str:
    if minutes < 1:
        return f"about {60 * minutes:.0f} seconds"
    return f"about {minutes:g} minute{'s' if minutes > 1 else ''}"


def _prose(docstring: str) -> str:
    """The docstring without its sections; a paragraph is one line, in which nothing can begin a list by chance."""
    text = re.split(r"\n\n(?=\w+:\n)", docstring)[0]
    paragraphs = text.split("\n\n")
    return "\n\n".join(each if each.startswith("- ") else " ".join(each.split()) for each in paragraphs)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    cells = [head, ("---",) * len(head), *([each.replace("|", r"\|") for each in row] for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


if __name__ == "__main__":
    write()
