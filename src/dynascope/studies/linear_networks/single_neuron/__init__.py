"""A single linear neuron is lazy, rich or delayed rich by the imbalance of its two layers."""
