"""SynFlow in rounds, compared with the usual PyTorch loop.

The networks are a ReLU network of widths 784-100-100-10 with 100 rounds, as an equinox module and as a PyTorch module,
and VGG-16 for 32 × 32 images (width 64, batch normalisation) with ten rounds. The baseline is the loop of the authors'
code: absolute weights in float64, one forward and one backward pass on an input of ones in each round, and a global
threshold from `torch.kthvalue`. It keeps the masks as tensors and computes nothing else. `dynascope` also checks
conservation, finds dead units, and reports the flow through each layer.

Run `python benchmarks/pruning.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import harness

torch = harness.torch_or_exit()

from torch import nn  # noqa: E402

from dynascope.interventions import prune  # noqa: E402
from dynascope.networks import MLP  # noqa: E402

COMPRESSION = 100.0
STAGES = (2, 64), (2, 128), (3, 256), (3, 512), (3, 512)


def main() -> None:
    layers = (nn.Linear(*widths, bias=False) for widths in ((784, 100), (100, 100), (100, 10)))
    dense = nn.Sequential(next(layers), nn.ReLU(), next(layers), nn.ReLU(), next(layers))
    convolutional = vgg16()
    for name, ours, module, shape, rounds, repeats in (
        ("784-100-100-10, JAX", MLP((784, 100, 100, 10), bias=False), dense, (784,), 100, 5),
        ("784-100-100-10", dense, dense, (784,), 100, 5),
        ("VGG-16", convolutional, convolutional, (3, 32, 32), 10, 2),
    ):
        theirs = baseline(module, shape, rounds)
        harness.use_best_threads(torch, theirs)
        one, other = harness.compare(
            name,
            lambda ours=ours, shape=shape, rounds=rounds: prune(
                ours, compression=COMPRESSION, rounds=rounds, input_shape=shape
            ),
            theirs,
            target=1.0,
            repeats=repeats,
        )
        if ours is module:
            equal = [bool((one.mask[name] == other[name]).all()) for name in other]
            print(f"equal masks in {sum(equal)} of {len(equal)} layers")


def baseline(module: nn.Module, shape: tuple[int, ...], rounds: int) -> Callable[[], dict[str, torch.Tensor]]:
    """The usual loop: score, threshold, mask."""

    def run() -> dict[str, torch.Tensor]:
        flowing = {
            name: each.detach().double().abs().requires_grad_(each.ndim > 1) for name, each in module.named_parameters()
        }
        buffers = {name: each.double() for name, each in module.named_buffers() if each.is_floating_point()}
        weights = {name: each for name, each in flowing.items() if each.ndim > 1}
        masks = {name: torch.ones_like(each) for name, each in weights.items()}
        ones = torch.ones(1, *shape, dtype=torch.float64)
        count = sum(each.numel() for each in masks.values())
        module.eval()
        for k in range(1, rounds + 1):
            masked = {name: each * masks[name] for name, each in weights.items()}
            total = torch.func.functional_call(module, {**flowing, **buffers, **masked}, (ones,)).sum()
            slopes = torch.autograd.grad(total, list(masked.values()))
            scores = {name: slope * masked[name] for name, slope in zip(masked, slopes, strict=True)}
            every = torch.cat([each.flatten() for each in scores.values()])
            dropped = count - round(count * COMPRESSION ** (-k / rounds))
            threshold = torch.kthvalue(every, dropped).values if dropped else every.new_tensor(-1.0)
            masks = {name: (each > threshold).double() for name, each in scores.items()}
        return masks

    return run


def vgg16() -> nn.Sequential:
    """VGG-16 for 32 × 32 images, with batch normalisation and one linear layer."""
    layers: list[nn.Module] = []
    inputs = 3
    for convolutions, outputs in STAGES:
        for _ in range(convolutions):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
            inputs = outputs
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs, 10, bias=False))


if __name__ == "__main__":
    main()
