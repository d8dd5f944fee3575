"""Time saved by the program cache: two commands, each run twice with an initially empty cache.

Each run is a separate process, as started by a user. The benchmark prints its wall time, and the time of the compiler
including reads from the cache, also as a share. It further prints the numbers of cached and of compiled programs, and
the time for tracing and lowering, which no cache saves. In the second run, all programs should come from the cache, and
compilation should take at most 5 % of the wall time. Run `python benchmarks/compile_cache.py`.
"""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
import tempfile
import time

import jax

from dynascope.cli import main as command_line

COMMANDS = (
    ["predict", "digits", "--network", "linear", "--check"],
    ["run", "single-neuron"],
)
SHARE = 0.05  # target for the second run
COMPILING = "/jax/core/compile/backend_compile_duration"
TRACING = ("/jax/core/compile/jaxpr_trace_duration", "/jax/core/compile/jaxpr_to_mlir_module_duration")
REQUESTS, HITS = "/jax/compilation_cache/compile_requests_use_cache", "/jax/compilation_cache/cache_hits"


def main() -> None:
    heads = f"{'wall':>8} {'compiling':>10} {'share':>7} {'found':>6} {'compiled':>9} {'tracing':>8}"
    print(f"{'command':<45} {'run':>6} {heads}")
    reached = True
    for command in COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            for turn in ("first", "second"):
                counts = run(command, folder)
                share = counts["compiling"] / counts["wall"]
                print(
                    f"{' '.join(command):<45} {turn:>6} {counts['wall']:>7.1f}s {counts['compiling']:>9.2f}s "
                    f"{share:>6.1%} {counts['found']:>6} {counts['compiled']:>9} {counts['tracing']:>7.1f}s"
                )
            reached = reached and counts["compiled"] == 0 and counts["compiling"] <= SHARE * counts["wall"]
    target = (
        f"all programs of the second run come from the cache, and compilation takes at most {SHARE:.0%} of its time"
    )
    print(f"{target}: {'yes' if reached else 'no'}")


def run(command: list[str], folder: str) -> dict[str, float]:
    """Run a command in a separate process, which counts its compiled programs."""
    rest = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_COMP", "JAX_PERSISTENT"))}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, __file__, *command, "--out", folder],
        env={
            **rest,
            "EQX_ON_ERROR": "off",
            "DYNASCOPE_CACHE": os.path.join(folder, "cache"),
        },  # as on the command line
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    return {**json.loads(done.stdout.splitlines()[-1]), "wall": time.perf_counter() - start}


def counted(command: list[str]) -> None:
    """Run a command in this process, and print the compilation counts as the last line."""
    events: collections.Counter[str] = collections.Counter()
    seconds: collections.Counter[str] = collections.Counter()
    jax.monitoring.register_event_listener(lambda name, **_: events.update([name]))
    jax.monitoring.register_event_duration_secs_listener(lambda name, length, **_: seconds.update({name: length}))
    code = command_line(command)
    counts = {
        "compiling": seconds[COMPILING],
        "tracing": sum(seconds[name] for name in TRACING),
        "found": events[HITS],
        "compiled": events[REQUESTS] - events[HITS],
    }
    print(json.dumps(counts))
    sys.exit(code)


if __name__ == "__main__":
    counted(sys.argv[1:]) if sys.argv[1:] else main()
