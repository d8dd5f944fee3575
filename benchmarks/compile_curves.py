"""Compilation time of a prediction with its loss curve, for each kind of network.

Each kind runs in a separate process without cached programs. The process predicts the staircase twice, and then the
staircase and the curve twice, without a check. The additional CPU seconds of each first prediction, over all threads,
are the time for tracing and compiling the *staircase* and the *curve*. The target is three seconds in total. *Kept* is
the additional time of first predictions in a process that finds the programs on disk.

Run `python benchmarks/compile_curves.py [--file FILE] [--only KIND …]`. Kinds that are already in the file are skipped.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, get_args

import jax
from predictions_on_data import CONTEXT, DATA, WIDTH
from resumable import keep, rows

from dynascope import predict
from dynascope.compilation import compile_cache
from dynascope.networks.kinds import NetworkKind, network_for
from dynascope.tasks import InContextRegression

FILE = Path(__file__).parent.parent / "docs" / "how-to" / "compile_curves.csv"
COLUMNS = ("network", "staircase", "curve", "compiling", "programs", "kept", "prediction")
MOST = 3.0  # target in CPU seconds
REQUESTS, HITS = "/jax/compilation_cache/compile_requests_use_cache", "/jax/compilation_cache/cache_hits"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--only", nargs="*", default=get_args(NetworkKind))
    parser.add_argument("--kind")
    options = parser.parse_args()
    if options.kind:
        print(json.dumps(measured(options.kind)))
        return
    done = {row["network"] for row in rows(options.file)}
    for kind in options.only:
        if kind not in done:
            keep(options.file, found(kind), COLUMNS)
    above = [row["network"] for row in rows(options.file) if float(row["compiling"]) > MOST]
    print(f"above {MOST:g} seconds: {', '.join(above) or 'none'}")


def found(kind: str) -> dict[str, Any]:
    """Run two processes, the second with the programs that the first compiled."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--kind", kind]
        environment = os.environ | {"DYNASCOPE_CACHE": folder}
        cold, warm = (
            json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
            for _ in range(2)
        )
    each = {name: f"{cold[name]:.1f}" for name in ("staircase", "curve")}
    return each | {
        "network": kind,
        "compiling": f"{cold['staircase'] + cold['curve']:.1f}",
        "programs": cold["compiled"],
        "kept": f"{warm['staircase'] + warm['curve']:.1f}",
        "prediction": f"{cold['prediction']:.2f}",
    }


def measured(kind: NetworkKind) -> dict[str, Any]:
    """Return the additional CPU seconds of first predictions, those of a second prediction, and the program count."""
    events: dict[str, int] = {}
    jax.monitoring.register_event_listener(lambda event, **_: events.update({event: events.get(event, 0) + 1}))
    data = DATA["iris"]()
    task: Any = InContextRegression.on_inputs_of(data, CONTEXT) if kind == "attention" else data
    if kind == "diagonal":
        task = data.only(data.target_names[0])
    network = network_for(kind, task, width=WIDTH)
    jumps = None if kind in ("linear", "diagonal") else 5

    def seconds(curve: bool) -> float:
        start = time.process_time()
        predict(task, network, scale=1e-3, jumps=jumps, curve=curve)
        return time.process_time() - start

    with compile_cache():
        staircase = seconds(False), seconds(False)
        both = seconds(True), seconds(True)
        compiled = events.get(REQUESTS, 0) - events.get(HITS, 0)
    return {
        "staircase": staircase[0] - staircase[1],
        "curve": both[0] - both[1],
        "prediction": both[1],
        "compiled": compiled,
    }


if __name__ == "__main__":
    main()
