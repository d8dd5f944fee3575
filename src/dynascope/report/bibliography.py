"""References as BibTeX."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["bibtex"]

_ARXIV = re.compile(r"\s*\(arXiv[: ]\s*([\w./-]+)\)\s*$")
_AUTHOR = re.compile(r"(?:\w\.[ -]?)+(?:\s?[\w’'-]+)+")
_SPECIAL = str.maketrans({each: f"\\{each}" for each in "&%$#_{}"})


def bibtex(reference: str) -> str:
    """Return BibTeX entries for a reference: works separated by semicolons, each as "authors, title (arXiv id)".

    A mention of a thesis, such as "; theory in Nam, DPhil thesis (2024)", becomes a note in the entry of the preceding
    work.

    Example:
        >>> print(bibtex("S. Pesme, N. Flammarion, Saddle-to-saddle dynamics (arXiv 2304.00488)"))
        @misc{pesme2023,
          author = {S. Pesme and N. Flammarion},
          title = {{Saddle-to-saddle dynamics}},
          year = {2023},
          eprint = {2304.00488},
          archivePrefix = {arXiv}
        }
    """
    works = [work.strip() for work in re.split(r"(?<=\d\));\s+|;\s+(?=\w\.\s)", reference) if work.strip()]
    found = _ARXIV.search(works[-1]) if len(works) > 1 and "thesis" in works[-1] else None
    if found:  # theses are not on arXiv, so the identifier belongs to the preceding work
        works[-2:] = [works[-2] + found[0], works[-1][: found.start()]]
    return "\n\n".join(_entry(work) for work in works)


def _entry(work: str) -> str:
    found = _ARXIV.search(work)
    identifier = found[1] if found else ""
    text, *notes = re.split(r";\s+(?=[^;]*thesis)", _ARXIV.sub("", work))
    parts = text.split(", ")
    authors = []
    while len(parts) > 1 and _AUTHOR.fullmatch(parts[0]):
        authors.append(parts.pop(0))
    year = f"20{identifier[:2]}" if re.match(r"\d{4}\.", identifier) else ""
    fields = {
        "author": " and ".join(authors),
        "title": f"{{{', '.join(parts).translate(_SPECIAL)}}}",
        "year": year,
        "eprint": identifier,
        "archivePrefix": "arXiv" if identifier else "",
        "note": "; ".join(notes).translate(_SPECIAL),
    }
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items() if value)
    return f"@misc{{{_key(authors, parts, year)},\n{lines}\n}}"


def _key(authors: list[str], title: list[str], year: str) -> str:
    word = authors[0].split()[-1] if authors else title[0].split()[0]
    plain = unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode()
    return re.sub(r"\W", "", plain).lower() + year
