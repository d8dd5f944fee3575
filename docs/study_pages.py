"""A page for each study and an index of them, written before Sphinx builds, or by `python docs/study_pages.py`.

The pages are plain Markdown and part of the repository, so they can be read without building the documentation.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from dynascope.report.bibliography import bibtex
from dynascope.report.formatting import parameter_text
from dynascope.results import describe
from dynascope.results.numbers import number
from dynascope.studies import StaircaseStudy, Study, StudyEntry, fields, find_study, study_index

DOCS = Path(__file__).parent
FOLDER = DOCS / "studies"
VERDICTS = DOCS / "concepts" / "default_verdicts.csv"
README = DOCS.parent / "README.md"
NO_BREAK = "\N{NO-BREAK SPACE}"
QUESTIONS = "## Find your question"  # the part of the README that sorts the studies


def setup(app: Any) -> dict[str, bool]:
    """Take part in a build of Sphinx."""
    app.connect("builder-inited", lambda _: write())
    return {"parallel_read_safe": True}


def write() -> None:
    """Update the folder; unchanged files are not rewritten."""
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
    ordered = sorted(entries, key=lambda entry: (entry.subject, entry.name))
    subjects = {name: list(group) for name, group in itertools.groupby(ordered, key=lambda entry: entry.subject)}
    return {
        "index.md": _index(subjects),
        **{f"{_file(name)}.md": _subject(name, group) for name, group in subjects.items()},
        **{f"{each.name}.md": _page(each, find_study(each.name)) for each in entries},
    }


@functools.cache
def _texts() -> dict[str, dict[str, str]]:
    """Return the stored texts of each study with its default settings: captions and meaning."""
    with VERDICTS.open(newline="", encoding="utf-8") as lines:
        return {row["study"]: row for row in csv.DictReader(lines)}


def _index(subjects: dict[str, list[StudyEntry]]) -> str:
    questions = README.read_text("utf-8").partition(f"{QUESTIONS}\n")[2].partition("\n## ")[0].strip()
    questions = questions.replace("](docs/studies/", "](").replace("](docs/", "](../")
    return _joined(
        "# Studies",
        "Each study tests a published claim: it compares predictions with training runs and reaches a verdict.",
        f"## By question\n\n{questions}",
        "## By subject",
        *(f"### [{name.capitalize()}]({_file(name)}.md)\n\n{_gallery(group)}" for name, group in subjects.items()),
        _contents((name.capitalize(), _file(name)) for name in subjects),
    )


def _subject(name: str, group: list[StudyEntry]) -> str:
    titles = ((find_study(each.name).title or each.name.replace("-", " ").capitalize(), each.name) for each in group)
    return _joined(f"# {name.capitalize()}", _gallery(group), _contents(titles))


def _file(subject: str) -> str:
    return subject.replace(" ", "-")


def _gallery(group: list[StudyEntry]) -> str:
    """A row for each study, with a thumbnail of its main figure where there is one."""
    rows = []
    for each in group:
        picture = f"[![{each.name}](figures/{each.name}.svg)]({each.name}.md)" if _picture(each.name).exists() else ""
        rows.append((picture, f"[`{each.name}`]({each.name}.md)", each.summary, _duration(each.minutes)))
    return _table(("", "study", "what it shows", "time"), rows)


def _picture(name: str) -> Path:
    return FOLDER / "figures" / f"{name}.svg"


def _contents(entries: Iterable[tuple[str, str]]) -> str:
    """A hidden table of contents, from which the side bar is made."""
    lines = [f"{title} <{file}>" for title, file in entries]
    return "\n".join(("```{toctree}", ":hidden:", "", *lines, "```"))


def _page(entry: StudyEntry, study: type[Study]) -> str:
    usual, reference = study(), study.reference
    question = usual.question
    source = f"../../src/{entry.module.replace('.', '/')}.py"
    texts = _texts().get(entry.name, {})
    meaning = texts.get("meaning")
    verdict = f"Verdict with the default settings: **{texts['verdict']}**. {texts['in words']}" if texts else ""
    picture = _picture(entry.name)
    figures = [f"{i}. {each}" for i, each in enumerate(texts.get("figures", "").splitlines(), start=1)]
    return _joined(
        f"# {entry.name}",
        f"**{question or entry.summary}**",
        f"```math\n{usual.equation}\n```" if usual.equation else "",
        entry.summary if question else "",
        f"Claim: {reference.claim}",
        f"![{usual.title or entry.name}](figures/{picture.name})" if picture.exists() else "",
        verdict,
        *_commands(usual),
        "## Method",
        _prose(inspect.getdoc(study) or ""),
        f"## Result\n\n{meaning} (The numbers are from a run with the default settings.)" if meaning else "",
        "## Figures\n\n" + "\n".join(figures) if figures else "",
        "## Fields\n\nEach field is a command-line option, `--name value` (for a list: `--name 1 2 3`), and a keyword "
        f'argument in Python:\n`find_study("{entry.name}")(name=value)`.',
        _table(("field", "default", "description"), list(_fields(usual))),
        "## Tolerances",
        _tolerances(study),
        "## Paper",
        f"{reference.paper}. [arXiv {reference.arxiv}](https://arxiv.org/abs/{reference.arxiv})"
        + (f"\n\n{reference.also}" if reference.also else ""),
        f"```bibtex\n{bibtex(f'{reference.paper} (arXiv {reference.arxiv})')}\n```",
        f"Source code: [`{entry.module}.{entry.class_name}`]({source}).",
    )


def _commands(usual: Study) -> Iterator[str]:
    yield f"    dynascope run {usual.name}"
    duration = _duration(usual.minutes)
    yield f"The command takes {duration} on two cores, prints the verdict, and writes a page and a record. In Python:"
    yield f'```python\nfrom dynascope.studies import find_study\n\nresult = find_study("{usual.name}")().run()\n```'
    if usual.tiny and usual.minutes >= 0.5:
        command = type(usual)(**usual.tiny).command
        options = re.sub(" (?!--)", NO_BREAK, command)
        lines = textwrap.wrap(options, 78, break_long_words=False, break_on_hyphens=False, subsequent_indent=" " * 8)
        yield "A smaller version of the study runs in seconds:\n\n    " + " \\\n    ".join(lines).replace(NO_BREAK, " ")
        if usual.tiny_limits:
            yield usual.tiny_limits


def _fields(usual: Study) -> Iterator[tuple[str, str, str]]:
    hints, stand_ins = get_type_hints(type(usual)), fields.stand_ins(usual)
    descriptions = fields.with_bounds(usual)
    for field in dataclasses.fields(usual):
        default = getattr(usual, field.name)
        listed = isinstance(default, list) and default
        value = " ".join(map(str, default)) if listed else stand_ins.get(field.name) or parameter_text(default)
        description = descriptions[field.name]
        options = [str(each) for each in get_args(hints[field.name]) if get_origin(hints[field.name]) is Literal]
        if not all(option in description for option in options):
            description += f" One of {', '.join(options)}."
        yield f"`--{field.name.replace('_', '-')}`", value, description


def _tolerances(study: type[Study]) -> str:
    """Return a table with one row per quantity; a largest error with the same tolerance is omitted."""
    limits = study.tolerance
    if not limits:
        if not issubclass(study, StaircaseStudy):
            return "The tolerances depend on the fields. The result lists each tolerance with its reason."
        return (
            "The theory of a loss staircase sets the tolerances of the plateau losses and jump times for the chosen "
            "initial scale, and the tolerance of the slopes. The predicted and observed numbers of jumps must be equal."
            " See "
            "[What is scored](../concepts/conventions.md#what-is-scored)."
        )
    worst = {f"{name}_maximum" for name, limit in limits.items() if limits.get(f"{name}_maximum") == limit}
    rows = []
    for name, (limit, reason) in limits.items():
        if name not in worst:
            rows.append((f"`{name}`", describe(name, study.names)[0], number(limit), reason))
    table = _table(("quantity", "description", "tolerance", "reason"), rows)
    return _joined(
        "For curves, both the overall error and the largest pointwise error must be within the tolerance."
        if worst
        else "",
        table,
    ).strip()


def _duration(minutes: float) -> str:
    if minutes < 1:
        return f"about {60 * minutes:.0f} seconds"
    return f"about {minutes:g} minute{'s' if minutes > 1 else ''}"


def _prose(docstring: str) -> str:
    """Return the docstring without its sections, one line per paragraph, so that no line starts a list."""
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
