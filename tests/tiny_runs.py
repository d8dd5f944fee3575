"""Runs of the studies at their tiny fields, each made once for the tests of its own and for those of all studies."""

from __future__ import annotations

import functools
from typing import NamedTuple

import xarray as xr

from dynascope.results import Comparison
from dynascope.studies import Study, find_study


class TinyRun(NamedTuple):
    """What tests only read.

    Attributes:
        study: With what it keeps of its runs.
        predicted: With the tolerances of the study.
        observed: What was measured.
        tree: Both sides compared.
    """

    study: Study
    predicted: xr.Dataset
    observed: xr.Dataset
    tree: Comparison


@functools.cache
def tiny_run(name: str) -> TinyRun:
    """The run of a study, within a module-scoped fixture, so that no test has anything exchanged while it is made."""
    kind = find_study(name)
    study = kind(**kind.tiny)
    predicted = study.predict()
    observed = study.observe()
    tree = study.with_page(study.compare(observed, predicted))
    run = TinyRun(study, predicted.record, observed.record, tree)
    for record in (run.predicted, run.observed, *run.tree.sides.values(), run.tree.residual):
        for values in record.data_vars.values():
            values.variable.values.flags.writeable = False
    return run
