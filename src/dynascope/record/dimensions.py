"""The dimensions that records may have, in words."""

from __future__ import annotations

__all__ = ["DIMENSIONS"]

DIMENSIONS = {
    "time": "gradient-flow time",
    "step": "optimiser step",
    "sampled_step": "optimiser step of which a statistic was sampled",
    "seed": "seed of the initialisation",
    "scale": "initialisation scale",
    "learning_rate": "learning rate",
    "jump": "number of the jump in a staircase, from 1",
    "level": "number of the plateau in a staircase, from 0",
    "layer": "layer, from the input",
    "mode": "mode of the data, strongest first",
    "sample": "sample of the data",
    "samples": "number of training samples",
    "compute": "compute, training time × neurons",
    "neurons": "number of neurons",
    "exponent": "exponent α of the skill frequencies",
    "neuron": "hidden neuron",
    "weight": "weight of a neuron",
    "group": "group of weights",
    "head": "attention head",
    "feature": "input coordinate or feature",
    "frequency": "frequency of the Fourier transform",
    "irrep": "irreducible representation",
    "target": "output coordinate",
    "length": "number of elements composed",
    "architecture": "kind of network",
    "start": "initial weights",
    "scaling_parameter": "scaling parameter (the width, or what else grows)",
    "knob": "what is scaled",
    "skill": "skill, from the most frequent on",
    "class": "class label",
    "charge": "conserved quantity",
    "part": "part of a symmetry, which is one parameter",
    "imbalance": "imbalance δ of the layers",
    "balance": "balance λ of the layers",
    "hypothesis": "hypothesis",
    "run": "training run",
}
