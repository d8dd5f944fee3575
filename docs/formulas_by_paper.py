"""Write the page that lists the theory functions by paper, before a Sphinx build or by running this file.

A function names its sources under "References" in its docstring; studies provide the titles of papers.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from dynascope import theory
from dynascope.studies import study_index

PAGE = Path(__file__).parent / "reference" / "theory" / "by_paper.md"
INTRODUCTION = """# Formulas by paper

This page lists the functions of `dynascope.theory` that implement the equations of each paper, and the studies that
test the claims of the paper.
"""
THESIS = "Nam, DPhil thesis"  # without an arXiv identifier
OTHERS = "Other papers"


class Formula(NamedTuple):
    """A theory function, with its summary and the sources in its docstring."""

    name: str
    summary: str
    sources: str


def setup(app: Any) -> dict[str, bool]:
    """Take part in a build of Sphinx."""
    app.connect("builder-inited", lambda _: write())
    return {"parallel_read_safe": True}


def write() -> None:
    """Bring the page up to date."""
    text = "\n".join((INTRODUCTION, *sections()))
    if not PAGE.exists() or PAGE.read_text("utf-8") != text:
        PAGE.write_text(text, encoding="utf-8", newline="\n")


def sections() -> Iterator[str]:
    """A section for each paper that a study tests, those with the most functions first, and one for all others."""
    titles = {each.arxiv: each.paper.partition(";")[0] for each in study_index().values()}
    titles[THESIS] = "Y. Nam, DPhil thesis (2024)"
    papers: dict[str, list[Formula]] = defaultdict(list)
    for formula in formulas(theory):
        named = [title for title in titles if title in formula.sources]
        for paper in named or [OTHERS]:
            papers[paper].append(formula)
    for paper in sorted(papers, key=lambda paper: (paper == OTHERS, -len(papers[paper]))):
        yield f"## {titles.get(paper, paper)}\n"
        if paper not in (THESIS, OTHERS):
            yield f"[arXiv {paper}](https://arxiv.org/abs/{paper})\n"
            tested = [each.name for each in study_index().values() if each.arxiv == paper]
            yield f"Studies: {', '.join(f'[`{name}`](../../studies/{name}.md)' for name in tested)}.\n"
        yield "| function | result | source |\n| --- | --- | --- |"
        for each in sorted(papers[paper]):
            link = f"{{py:func}}`{each.name} <dynascope.theory.{each.name}>`"
            yield f"| {link} | {each.summary} | {each.sources} |"
        yield ""


def formulas(module: ModuleType) -> Iterator[Formula]:
    """The functions of a module and of the modules in it that name sources."""
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value):
            yield from formulas(value)
        elif inspect.isfunction(value):
            documentation = inspect.getdoc(value) or ""
            found = re.search(r"\n(?:References|Source):\s(.*?)(?=\n\n|$)", documentation, re.DOTALL)
            if found:
                place = f"{module.__name__}.{name}".removeprefix("dynascope.theory.")
                summary = re.sub(r"([|*\[\]])", r"\\\1", " ".join(documentation.partition("\n\n")[0].split()))
                yield Formula(place, summary, " ".join(found[1].split()))


if __name__ == "__main__":
    write()
