"""A training run that never ends; run by the tests that kill it. Arguments: the folder, and the step or "new"."""

import sys

import jax.numpy as jnp
import numpy as np

from dynascope import Recorder

if __name__ == "__main__":
    path, resume = sys.argv[1], None if sys.argv[2] == "new" else int(sys.argv[2])
    step = resume or 0
    print("starting", flush=True)
    recorder = Recorder(
        lambda params, x: x @ params,
        jnp.full((2, 1), 1.0 + step),
        path,
        reference=np.ones((4, 2), np.float32),
        preset=["weights"],
        schedule=1,
        max_overhead=None,
        resume=resume,
        verbose=False,
    )
    print("recording", flush=True)
    while True:
        step += 1
        recorder.step(jnp.full((2, 1), 1.0 + step), loss=float(step))
