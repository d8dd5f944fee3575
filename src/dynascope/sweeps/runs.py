"""What runs in the cells of a sweep: a study, or any function of keyword arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeAlias

from dynascope.studies import Study, find_study
from dynascope.sweeps.function_run import FunctionRun
from dynascope.sweeps.study_run import StudyRun
from dynascope.validation import require

__all__ = ["Run", "run_of"]

Run: TypeAlias = StudyRun | FunctionRun


def run_of(run: Any, fixed: Mapping[str, Any]) -> Run:
    """Convert a study, its name, or a function to a run.

    Raises:
        InputError: It is neither, or the study does not exist.
    """
    if isinstance(run, str):
        run = find_study(run)
    if isinstance(run, Study):
        given = {each.name: getattr(run, each.name) for each in dataclasses.fields(run)}
        usual = dataclasses.asdict(type(run)())
        changed = {name: value for name, value in given.items() if value != usual[name]}
        return StudyRun(type(run), {**changed, **fixed})
    if isinstance(run, type) and issubclass(run, Study):
        return StudyRun(run, dict(fixed))
    remedy = "pass a study, its name, or a function of keyword arguments"
    require(callable(run), f"run has type {type(run).__name__}", argument="run", value=str(run), remedy=remedy)
    return FunctionRun(run, dict(fixed))
