"""Alternating gradient flow as an optimiser: training one neuron at a time, compared with SGD and Adam."""
