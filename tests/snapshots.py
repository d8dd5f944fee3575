"""Snapshots of training runs for tests of probes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynascope.diagnosis.probe import Probe, ProbeCost
from dynascope.diagnosis.snapshot import ForwardPass, Initial, Snapshot


def fail(*_: Any) -> Any:
    raise AssertionError


def initial(weights: Mapping[str, Any] | None = None, active: Any = None, kernel: Any = None) -> Initial:
    return Initial(weights or {}, active or {}, kernel)


def snapshot(weights: Mapping[str, Any] | None = None, forward: ForwardPass | None = None, **given: Any) -> Snapshot:
    """A snapshot that fails if a probe reads what was not given."""
    defaults: dict[str, Any] = {
        "initial": None,
        "before": None,
        "gradients": None,
        "targets": None,
        "compute_forward": fail if forward is None else lambda: forward,
        "compute_kernel": fail,
        "note": fail,
    }
    return Snapshot(weights=weights or {}, **{**defaults, **given})


def forward(outputs: Any = None, **given: Any) -> ForwardPass:
    return ForwardPass(outputs, **{"preactivations": {}, "features": {}, **given})


def values(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(each).tolist() for name, (_, each) in found.items()}


def probe(name: str, measure: Any, **given: Any) -> Probe:
    return Probe(
        name=name,
        description=name,
        needs=(),
        measure=measure,
        cost=lambda sizes: ProbeCost(0.0, 0.0),
        names={},
        **given,
    )
