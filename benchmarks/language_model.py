"""Training of a small GPT, compared with the same GPT in eager PyTorch.

`language_model` of width 128 with four blocks and four heads trains with AdamW on 32 windows of 64 tokens, in float32.
The baseline has the same weights, fused attention (`scaled_dot_product_attention`) and as many threads as there are
cores. Both sides use the same 32 windows in every step, so their losses can be compared.

Run `python benchmarks/language_model.py [--steps STEPS]`. Run it under `taskset --cpu-list 0` to compare on one core.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import harness
import jax
import numpy as np
import optax

from dynascope.networks import Transformer, language_model
from dynascope.tasks import Labelled
from dynascope.training import Descent, descend

torch = harness.torch_or_exit()

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

VOCABULARY, CONTEXT, BATCH, WIDTH, HEADS, BLOCKS = 64, 64, 32, 128, 4, 4
RATE, DECAY = 1e-3, 0.1
TARGET = 1 / 1.5  # a step takes at most 1.5 times as long as in PyTorch


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--steps", type=int, default=20)
    steps = parser.parse_args().steps
    windows = np.random.default_rng(0).integers(VOCABULARY, size=(BATCH, CONTEXT + 1))
    data = Labelled(windows[:, :-1], windows[:, 1:])
    network = jax.tree.map(
        lambda leaf: leaf.astype(np.float32),
        language_model(VOCABULARY, CONTEXT, width=WIDTH, heads=HEADS, blocks=BLOCKS),
    )
    method = Descent(AdamW, learning_rate=RATE, steps=steps, save=[0, steps], loss="cross_entropy")
    inputs, labels = torch.tensor(data.inputs), torch.tensor(data.labels)
    torch.set_num_threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)

    def ours() -> tuple[np.ndarray, Any]:
        record, end = descend(data, network, method, return_networks=True)
        return record["loss"].to_numpy(), end

    def theirs() -> tuple[np.ndarray, Any]:
        module = GPT(network)
        optimizer = torch.optim.AdamW(module.parameters(), lr=RATE, weight_decay=DECAY)
        losses = []
        for step in range(steps + 1):
            loss = functional.cross_entropy(module(inputs).flatten(0, 1), labels.flatten())
            losses.append(loss.item())
            if step < steps:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return np.array(losses)[[0, -1]], module

    with torch.no_grad():
        expected = GPT(network)(inputs).numpy()
    error = np.abs(np.asarray(jax.jit(network.__call__)(data.inputs)) - expected).max()
    print(f"outputs before training: largest difference {error:.1e}, largest output {np.abs(expected).max():.1f}")
    name = f"language model, {torch.get_num_threads()} threads"
    (mine, _), (other, _) = harness.compare(name, ours, theirs, target=TARGET, repeats=5)
    print("target: a step takes at most 1.5 times as long as in PyTorch (ratio 0.67)")
    print(f"loss from {mine[0]:.4f} to {mine[1]:.4f}; relative difference {np.abs(mine / other - 1).max():.1e}")


def AdamW(rate: Any) -> optax.GradientTransformation:  # noqa: N802
    return optax.adamw(rate, weight_decay=DECAY)


class Block(nn.Module):
    """A block with layer normalisation before attention and MLP."""

    def __init__(self, block: Any):
        super().__init__()
        self.norms = nn.ModuleList(
            [normalisation(each) for each in (block.attention_normalisation, block.mlp_normalisation)]
        )
        matrices, biases = (
            (block.queries, block.keys, block.values),
            (block.query_bias, block.key_bias, block.value_bias),
        )
        self.projection = linear(np.concatenate(matrices, axis=1), np.concatenate(biases))
        self.output = linear(block.outputs, block.output_bias)
        self.mlp = nn.Sequential(
            linear(block.first, block.first_bias), nn.GELU(approximate="tanh"), linear(block.second, block.second_bias)
        )

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        """Return the residual stream after the block."""
        parts = self.projection(self.norms[0](h)).chunk(3, dim=-1)
        queries, keys, values = (each.unflatten(-1, (HEADS, -1)).transpose(1, 2) for each in parts)
        mixed = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        h = h + self.output(mixed.transpose(1, 2).flatten(2))
        return h + self.mlp(self.norms[1](h))


class GPT(nn.Module):
    """The network with the weights of a `Transformer`."""

    def __init__(self, network: Transformer):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(torch.tensor(network.embedding), freeze=False)
        self.positions = nn.Parameter(torch.tensor(network.positions))
        self.blocks = nn.Sequential(*map(Block, network.blocks))
        self.norm = normalisation(network.normalisation)
        self.unembedding = linear(network.unembedding)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the outputs at every position."""
        return self.unembedding(self.norm(self.blocks(self.embedding(tokens) + self.positions)))


def linear(weights: Any, bias: Any = None) -> nn.Linear:
    """Return a linear layer with copies of the weights."""
    layer = nn.Linear(*weights.shape, bias=bias is not None)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weights.T))
        if bias is not None:
            layer.bias.copy_(torch.tensor(bias))
    return layer


def normalisation(layer: Any) -> nn.LayerNorm:
    """Return a layer normalisation with copies of gain and shift."""
    norm = nn.LayerNorm(len(layer.gain))
    with torch.no_grad():
        norm.weight.copy_(torch.tensor(layer.gain))
        norm.bias.copy_(torch.tensor(layer.shift))
    return norm


if __name__ == "__main__":
    main()
