"""The calls that compute what a theory says of a case, to copy and run."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np

from dynascope.networks.deep_linear import DeepLinear
from dynascope.networks.kinds import is_specification
from dynascope.networks.mlp import MLP
from dynascope.networks.user_module import user_network
from dynascope.prediction.case import Case
from dynascope.prediction.theories.loss_record import POINTS
from dynascope.prediction.theories.theory import Theory

__all__ = ["Names", "function_call", "horizon", "names_of", "predict_call", "script"]

_UNIT = 1e-9  # from one, of the power of white inputs that need no factor
_WEAKEST = 0.05  # of the strongest singular value of the target, that is waited for
_NONE = 1e-9  # of the size of the targets, below which they go with no input alone
_SETTLING = 5.0  # units of time after which what grew has come to rest
_POINTS = POINTS - 1  # times, as many as a prediction has, so that one compiled program serves both
_PROJECTED = "(lambda v: numpy.outer(task.inputs @ v, v))(numpy.linalg.eigh(task.input_moment)[1][:, -1])"
_ROOMS = ("GradientFlow", "alternating", "networks", "observe", "predict", "probes", "theory")


@dataclasses.dataclass(frozen=True)
class Names:
    """What data and network are called where the calls are run, which know `task` and `network`.

    Attributes:
        setup: What to run before.
        unit: The network with its weights at unit scale.
        scale: The factor on them.
        said: What `predict` is told of the start.
    """

    setup: tuple[str, ...]
    unit: str
    scale: str
    said: str


def names_of(network: Any, scale: float | None, *, width: int = 50, seed: int = 0) -> Names:
    """What a network is called, as `which` was given it.

    Example:
        >>> names_of("linear", 1e-3).setup
        ('network = networks.network_for("linear", task, width=50, seed=0)',)
    """
    said = "" if scale is None else f", scale={float(scale)!r}"
    if isinstance(network, str):
        drawn = f'network = networks.network_for("{network}", task, width={width}, seed={seed})'
        return Names((drawn,), "network", repr(float(scale or 1)), said)
    if is_specification(network):
        drawn = f"network = networks.network_for(network, task, seed={seed})"
        return Names((drawn,), "network", repr(float(scale or 1)), said)
    from_user = user_network(network) is not None
    if not from_user and scale is not None:
        return Names((), "network", repr(float(scale)), said)
    measured = "networks.user_network(network)" if from_user else "network"
    factor = "scale" if scale is None else f"{float(scale)!r} * scale"
    return Names((f"unit, scale = networks.at_unit_scale({measured})",), "unit", factor, said)


def predict_call(theory: Theory, case: Case, names: Names) -> str:
    """How to predict by it."""
    normalised = ", normalised=True" if case.normalised else ""
    return f'predict(task, network{names.said}{normalised}, theory="{theory.name}")'


def function_call(theory: Theory, case: Case, names: Names, *, rough: bool) -> str:
    """How to call its function oneself; nothing where `predict` is the way.

    Args:
        theory: The theory.
        case: What it is asked about.
        names: How data and network are called.
        rough: Whether what it assumes holds only nearly.
    """
    call = theory.call
    factor = names.scale if re.fullmatch(r"[\w.+-]+", names.scale) else f"({names.scale})"
    power = case.white_power if "POWER" in call else 1.0
    if abs(power - 1) <= _UNIT:
        call = call.replace(" / POWER", "").replace("POWER * ", "")
    call = call if rough else call.replace(", approximate=ROUGH", "")
    call = call if case.normalised or theory.name == "modular-addition" else call.replace(", normalised=NORMALISED", "")
    if names.scale == "1.0":
        call = re.sub(r"SCALE(\*\*2)? \* ", "", call)
    layers = ("weights[0]", "weights[1]") if isinstance(case.network, DeepLinear | MLP) else ("first", "second")
    filled = {
        "TIMES": f"numpy.linspace(0, {horizon(case):g}, {_POINTS})" if "TIMES" in call else "",
        "FIRST": f"{names.unit}.{layers[0]}",
        "SECOND": f"{names.unit}.{layers[1]}",
        "NETWORK": names.unit,
        "SCALE": factor,
        "POWER": f"{power:.12g}",
        "NORMALISED": str(case.normalised),
        "ROUGH": "True",
        "ON_A_LINE": _PROJECTED if rough else "task.inputs",
        **{name: repr(value) for name, value in (theory.numbers(case) if call else {}).items()},
    }
    for name, value in filled.items():
        call = re.sub(rf"\b{name}\b", value, call)
    return re.sub(r"scale=\(([^()]*)\)", r"scale=\1", call)


def horizon(case: Case) -> float:
    """A time after which most is learned, to two digits, by how strongly inputs and targets go together."""
    if case.samples is None:
        return 1.0
    strengths = np.linalg.svd(case.task.cross_moment, compute_uv=False)
    weakest = float(strengths[strengths >= _WEAKEST * strengths[0]][-1])
    rate = weakest if weakest > _NONE * case.task.target_power**0.5 else float(case.input_power[0])
    time = (_SETTLING + math.log(max(1 / case.scale, 1))) / max(rate, 1e-300)
    return float(f"{time:.2g}")


def script(calls: list[tuple[str, tuple[str, ...]]], names: Names) -> str:
    """All of them, with what they need.

    Args:
        calls: What they are for, and they themselves.
        names: How data and network are called.

    Example:
        >>> print(script([("balanced", ("predict(task, network)",))], names_of("linear", 0.1)))
        from dynascope import networks, predict
        network = networks.network_for("linear", task, width=50, seed=0)
        # balanced
        predict(task, network)
    """
    body = [line for purpose, lines in calls for line in (f"# {purpose}", *lines)]
    needed = any(names.unit in line for _, lines in calls for line in lines)
    text = "\n".join([*(names.setup if needed else ()), *body])
    used = [room for room in _ROOMS if re.search(rf"(?<![\w.]){room}[.(]", re.sub(r"#.*", "", text))]
    modules = [name for name in ("jax", "numpy", "torch") if re.search(rf"(?<![\w.]){name}\.", text)]
    return "\n".join([*(f"import {name}" for name in modules), f"from dynascope import {', '.join(used)}", text])
