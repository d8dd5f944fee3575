"""A small classifier of images with running statistics."""

from __future__ import annotations

import equinox as eqx
import jax
import numpy as np

from dynascope.networks.residual import ResidualBlock


class Block(eqx.Module):
    """A residual block, the mean over pixels, and a linear layer."""

    block: ResidualBlock
    classifier: jax.Array | np.ndarray

    def __init__(self):
        draw = np.random.default_rng(3)
        self.block, self.classifier = ResidualBlock(1, 6, 1, draw), draw.normal(size=(6, 2))

    def __call__(self, x):
        return self.block.apply(x, training=False)[0].mean(axis=(1, 2)) @ self.classifier

    def train_step_outputs(self, x):
        h, block = self.block.apply(x, training=True)
        return h.mean(axis=(1, 2)) @ self.classifier, eqx.tree_at(lambda each: each.block, self, block)


def single(network):
    return jax.tree.map(lambda leaf: leaf.astype(np.float32) if eqx.is_inexact_array(leaf) else leaf, network)
