"""The command that runs a study, without importing other studies."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union, get_type_hints

import tyro

# Rooms load their modules lazily.
from dynascope.cli.exit_codes import code_of
from dynascope.cli.json_output import study_answer
from dynascope.cli.output import check_writable, open_page, print_json, print_paths, result_name, write_results
from dynascope.cli.progress import step

if TYPE_CHECKING:
    from dynascope.studies import Study

__all__ = ["Run", "run_command", "runner", "unchecked"]


@dataclasses.dataclass(frozen=True)
class Run:
    """Run a study: predict, observe, compare, and report whether theory and experiment agree.

    Args:
        study: Name of the study, as listed by `dynascope list`. For the options of a study, use
            `dynascope run STUDY --help`.
    """

    study: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="STUDY")]

    def __call__(self) -> int:
        """Never called, because each study has its own command."""
        raise NotImplementedError


@functools.cache
def runner(study_type: type[Study]) -> Callable[..., Callable[[], int]]:
    """Return the command that runs one study; the options are the fields of the study."""

    def run(study: Any, out: Path = Path(), open: bool = False, json: bool = False) -> Callable[[], int]:
        # The study is created here, so that its error messages about fields reach the user.
        return functools.partial(_run, study_type(**vars(study)), out, open, json)

    # Boolean fields take a value like all other fields, as in `--whitened True`.
    run.__annotations__["study"] = Annotated[unchecked(study_type), tyro.conf.FlagConversionOff]
    run.__doc__ = f"""{study_type.reference.claim}

    Args:
        study: Fields of the study.
        out: Folder for the page and the record.
        open: Open the page in the browser.
        json: Print one JSON object.
    """
    return run


def unchecked(study_type: type[Study]) -> type:
    """Return a dataclass with the fields of the study but without its checks."""
    types = get_type_hints(study_type)
    given = [
        (each.name, types[each.name], dataclasses.field(default=each.default))
        if each.default_factory is dataclasses.MISSING
        else (each.name, types[each.name], dataclasses.field(default_factory=each.default_factory))
        for each in dataclasses.fields(study_type)
    ]
    return dataclasses.make_dataclass(study_type.__name__, given, namespace={"__doc__": study_type.__doc__})


def run_command(studies: dict[str, type[Study]]) -> Callable[..., Callable[[], int]]:
    """Return the command `run` with one subcommand for each study, for shell completion."""

    def run(study: Callable[[], int]) -> Callable[[], int]:
        return study

    run.__annotations__["study"] = Union[  # noqa: UP007 - the choices are known only here
        tuple(
            Annotated[Any, tyro.conf.arg(constructor=runner(study)), tyro.conf.subcommand(name)]
            for name, study in studies.items()
        )
    ]
    run.__doc__ = Run.__doc__
    return run


def _run(study: Study, out: Path, open: bool, as_json: bool) -> int:
    start = time.perf_counter()
    check_writable(out)
    with step(f"Running {study.name}"):
        tree = study.run()
    usual = dataclasses.asdict(type(study)())
    changed = {name: value for name, value in dataclasses.asdict(study).items() if value != usual[name]}
    written = write_results(tree, out, result_name(study.name, changed))
    if as_json:
        print_json(study_answer(study, tree, seconds=time.perf_counter() - start, record=written))
    else:
        from dynascope.cli.terminal import print_agreement  # loads rich, which JSON output does not need

        print_agreement(study.reference, tree)
        print_paths(written)
    if open:
        open_page(written)
    return code_of(tree.verdict.outcome)
