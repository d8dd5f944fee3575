"""Alternating gradient flow as an optimiser: adding one neuron at a time, compared with SGD and Adam."""
