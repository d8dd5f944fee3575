"""One of two processes of data-parallel training: parallel_training.py RANK PATH KIND, with KIND plain or recorded."""

from __future__ import annotations

import hashlib
import random
import sys
from pathlib import Path

import numpy as np
import torch
from recorded_training import INPUTS, LABELS, functional, random_state, seed_all, sgd
from torch import nn

from dynascope.torch import Recorder


def main(rank: int, group: Path, kind: str) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{group}", rank=rank, world_size=2)
    seed_all(rank)
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    )
    optimizer = sgd(model)
    path = group.with_name(f"rank{rank}.zarr")
    x = INPUTS[rank::2].float(), LABELS[rank::2]
    recorder = Recorder(model, path, reference=x, schedule=1, verbose=False) if kind == "recorded" else None
    for _ in range(6):
        noise = random.gauss() + np.random.normal()  # noqa: NPY002
        loss = functional.cross_entropy(model(x[0] + noise), x[1])
        loss.backward()
        optimizer.step()
        if recorder is not None:
            recorder.step(loss=loss)
        optimizer.zero_grad()
    if recorder is not None:
        recorder.close()
    state = b"".join(each.numpy().tobytes() for each in model.state_dict().values())
    print(hashlib.sha256(state + str(random_state()).encode()).hexdigest(), loss.item())
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
