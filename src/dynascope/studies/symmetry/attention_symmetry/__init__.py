"""Biases that break the rotation symmetry of attention, the charges they change, and optimisers that keep it."""
