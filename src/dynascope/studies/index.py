"""The list of studies, available without importing them. `python -m dynascope.studies.index` updates it."""

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

# The package loads its modules lazily, so that listing the studies imports none of them.
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
    """The description of a study, available without importing the study.

    Attributes:
        name: Name on the command line.
        module: Module that defines the study.
        class_name: Name of the class in this module.
        subject: Subject of the study; the name of the folder that contains the module.
        summary: First line of the docstring of the module.
        paper: Authors and title of the paper.
        arxiv: arXiv identifier.
        claim: The claim that the study tests.
        minutes: Duration on two cores.
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
        """The entry of an imported study."""
        module, reference = importlib.import_module(study.__module__), study.reference
        # A study is a module in the folder of its subject, or a folder that contains a module `study`.
        folders = module.__name__.removesuffix(".study").split(".")
        subject = folders[-2:][0].replace("_", " ")
        summary = (inspect.getdoc(module) or reference.claim).partition("\n")[0]
        of_class = {"name": study.name, "module": module.__name__, "class_name": study.__name__}
        source = {"paper": reference.paper, "arxiv": reference.arxiv, "claim": reference.claim}
        return cls(**of_class, subject=subject, summary=summary, **source, minutes=float(study.minutes))

    def load(self) -> type[Study]:
        """Import this study and no others."""
        return getattr(importlib.import_module(self.module), self.class_name)


def study_index() -> dict[str, StudyEntry]:
    """List the studies of this package and of installed plugins, by name.

    The studies of this package are listed without being imported. Other packages can add studies: an entry point in the
    group "dynascope.studies" names a module that defines subclasses of `Study`. These modules are imported, and a
    failed import causes a warning. If two studies have the same name, the study of this package takes precedence.

    Example:
        >>> study_index()["linear-staircase"].subject
        'staircases'
    """
    entries = {each["name"]: StudyEntry(**each) for each in json.loads(_FILE.read_text("utf-8"))}
    for study in _plugins():
        entries.setdefault(study.name, StudyEntry.of(study))
    return dict(sorted(entries.items()))


@functools.cache
def find_studies() -> dict[str, type[Study]]:
    """Import all studies and return their classes by name; `study_index` lists them without importing them.

    Example:
        >>> "linear-staircase" in find_studies()
        True
    """
    return {name: entry.load() for name, entry in study_index().items()}


def find_study(name: str) -> type[Study]:
    """Import one study by name and return its class.

    Raises:
        InputError: No study has this name.

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
        remedy=f"did you mean {close[0]}? Otherwise, list all studies with `dynascope list`"
        if close
        else f"choose from {', '.join(entries)}",
    )
    return entries[name].load()


def study(name: str, /, **fields: Any) -> Study:
    """Create a study by name.

    Args:
        name: Name of the study, as `dynascope list` shows it.
        **fields: Values of fields; other fields keep their defaults.

    Raises:
        InputError: No study has this name, the study lacks one of the fields, or a value is outside its domain.

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
    """Import all studies of this package and write their entries to the index file, sorted by name."""
    modules = pkgutil.walk_packages(studies.__path__, prefix=f"{studies.__name__}.")
    found = [study for module in modules for study in _defined_in(module.name)]
    entries = sorted(map(StudyEntry.of, found), key=lambda entry: entry.name)
    with written_beside(path) as partial:
        text = json.dumps([dataclasses.asdict(entry) for entry in entries], indent=2, ensure_ascii=False)
        partial.write_text(f"{text}\n", encoding="utf-8", newline="\n")
    return entries


def _plugins() -> Iterator[type[Study]]:
    """The studies of other installed packages."""
    for entry in importlib.metadata.entry_points(group=_GROUP):
        try:
            found = list(_defined_in(entry.value))
        except Exception as error:  # an error in another package must not disable the other studies
            warnings.warn(f"the studies of {entry.value} cannot be imported: {error}", stacklevel=3)
        else:
            yield from found


def _defined_in(module_name: str) -> Iterator[type[Study]]:
    """The studies that a module defines, excluding those that it imports."""
    for value in vars(importlib.import_module(module_name)).values():
        defined = isinstance(value, type) and issubclass(value, studies.Study) and value.__module__ == module_name
        if defined and hasattr(value, "name"):
            yield value


if __name__ == "__main__":
    print(f"{len(write_index())} studies: {_FILE}")
