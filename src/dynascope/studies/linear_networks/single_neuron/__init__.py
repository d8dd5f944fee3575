"""The initial weights of a single linear neuron determine whether learning is lazy, rich or delayed rich."""
