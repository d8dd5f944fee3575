"""Which studies there are, told without importing them: `python -m dynascope.studies.index` writes the list anew."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import importlib.metadata
import inspect
import json
import pkgutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

# The face of the room loads what is behind it when it is used: to list the studies nothing of them is needed.
from dynascope import studies
from dynascope.results.whole_files import written_beside
from dynascope.validation import require, shown

if TYPE_CHECKING:
    from dynascope.studies import Study

__all__ = ["StudyEntry", "find_studies", "find_study", "study", "study_index"]

_FILE = Path(__file__).with_name("index.json")
_GROUP = "dynascope.studies"  # of entry points


@dataclasses.dataclass(frozen=True)
class StudyEntry:
    """What is known of a study before it is imported.

    Attributes:
        name: What the command line calls it.
        module: The module that declares it.
        class_name: Its class there.
        subject: The folder of the module, in words.
        summary: First line of the docstring of the module.
        paper: Authors and title.
        arxiv: arXiv identifier.
        claim: What is put to the test, in one sentence.
        minutes: How long it takes on two cores.
    """

    name: str
    module: str
    class_name: str
    subject: str
    summary: str
    paper: str
    arxiv: str
    claim: str
    minutes: float

    @classmethod
    def of(cls, study: type[Study]) -> StudyEntry:
        """The entry of a study that is imported."""
        module, reference = importlib.import_module(study.__module__), study.reference
        # A study is a module of its subject's folder, or a folder with a module `study`.
        folders = module.__name__.removesuffix(".study").split(".")
        subject = folders[-2:][0].replace("_", " ")
        summary = (inspect.getdoc(module) or reference.claim).partition("\n")[0]
        of_class = {"name": study.name, "module": module.__name__, "class_name": study.__name__}
        told = dataclasses.asdict(reference)
        return cls(**of_class, subject=subject, summary=summary, **told, minutes=float(study.minutes))

    def load(self) -> type[Study]:
        """Import the study, and nothing of the others."""
        return getattr(importlib.import_module(self.module), self.class_name)


def study_index() -> dict[str, StudyEntry]:
    """What is known of every study, by name: of this package, and of those that installed packages offer.

    Of this package nothing is imported. Another package takes part by naming a module that defines a subclass of
    `Study` under the entry point group "dynascope.studies"; such a module is imported, and if it cannot be, a warning
    says so. Where two studies have one name, that of this package is meant.

    Example:
        >>> study_index()["linear-staircase"].subject
        'staircases'
    """
    entries = {each["name"]: StudyEntry(**each) for each in json.loads(_FILE.read_text("utf-8"))}
    for study in _offered():
        entries.setdefault(study.name, StudyEntry.of(study))
    return dict(sorted(entries.items()))


@functools.cache
def find_studies() -> dict[str, type[Study]]:
    """Every study by name, imported; see `study_index`, which imports nothing of this package.

    Example:
        >>> "linear-staircase" in find_studies()
        True
    """
    return {name: entry.load() for name, entry in study_index().items()}


def find_study(name: str) -> type[Study]:
    """The study of that name; no other is imported.

    Raises:
        InputError: There is none.

    Example:
        >>> find_study("linear-stairs")
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: no study is called 'linear-stairs': did you mean linear-staircase? ...
    """
    entries = study_index()
    close = difflib.get_close_matches(name, entries, 1)
    require(
        name in entries,
        f"no study is called {shown(name)!r}",
        argument="study",
        value=name,
        remedy=f"did you mean {close[0]}? `dynascope list` shows all" if close else f"choose from {', '.join(entries)}",
    )
    return entries[name].load()


def study(name: str, /, **fields: Any) -> Study:
    """Make the study of a published result.

    Args:
        name: Its name, as `dynascope list` shows it.
        **fields: Values of its fields; the others keep their defaults.

    Raises:
        InputError: There is no study of that name, it has no such field, or a value is outside its domain.

    Example:
        >>> study("linear-staircase", scale=1e-6).scale
        1e-06
    """
    kind = find_study(name)
    known = [each.name for each in dataclasses.fields(kind)]  # pyright: ignore[reportArgumentType]
    for field, value in fields.items():
        require(
            field in known,
            f"{name} has no field {field!r}",
            argument=field,
            value=value,
            remedy=f"choose from {', '.join(known)}",
        )
    return kind(**fields)


def write_index(path: Path = _FILE) -> list[StudyEntry]:
    """Import every module of this package's studies and write what they declare, sorted by name."""
    modules = pkgutil.walk_packages(studies.__path__, prefix=f"{studies.__name__}.")
    found = [study for module in modules for study in _declared(module.name)]
    entries = sorted(map(StudyEntry.of, found), key=lambda entry: entry.name)
    with written_beside(path) as partial:
        text = json.dumps([dataclasses.asdict(entry) for entry in entries], indent=2, ensure_ascii=False)
        partial.write_text(f"{text}\n", encoding="utf-8", newline="\n")
    return entries


def _offered() -> Iterator[type[Study]]:
    """The studies of other packages."""
    for entry in importlib.metadata.entry_points(group=_GROUP):
        try:
            found = list(_declared(entry.value))
        except Exception as error:  # whatever another package does wrong, the other studies can be run
            warnings.warn(f"the studies of {entry.value} cannot be imported: {error}", stacklevel=3)
        else:
            yield from found


def _declared(module_name: str) -> Iterator[type[Study]]:
    """The studies that a module defines, and not those that it imports."""
    for value in vars(importlib.import_module(module_name)).values():
        own = isinstance(value, type) and issubclass(value, studies.Study) and value.__module__ == module_name
        if own and hasattr(value, "name"):
            yield value


if __name__ == "__main__":
    print(f"{len(write_index())} studies: {_FILE}")
