"""Alternating gradient flow as an optimiser: training one neuron at a time, beside SGD and Adam."""
