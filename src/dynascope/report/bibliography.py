"""References as BibTeX."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["bibtex"]

_ARXIV = re.compile(r"\s*\(arXiv[: ]\s*([\w./-]+)\)\s*$")
_AUTHOR = re.compile(r"(?:\w\.[ -]?)+(?:\s?[\w’'-]+)+")
_SPECIAL = str.maketrans({each: f"\\{each}" for each in "&%$#_{}"})


def bibtex(reference: str) -> str:
    """Entries for what a reference names: works apart by semicolons, each as "authors, title (arXiv id)".

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
    works = [work.strip() for work in re.split(r";\s+(?=(?:\w\.|\w+,)\s)", reference) if work.strip()]
    return "\n\n".join(_entry(work) for work in works)


def _entry(work: str) -> str:
    found = _ARXIV.search(work)
    identifier = found[1] if found else ""
    parts = _ARXIV.sub("", work).split(", ")
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
    }
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items() if value)
    return f"@misc{{{_key(authors, parts, year)},\n{lines}\n}}"


def _key(authors: list[str], title: list[str], year: str) -> str:
    word = authors[0].split()[-1] if authors else title[0].split()[0]
    plain = unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode()
    return re.sub(r"\W", "", plain).lower() + year
