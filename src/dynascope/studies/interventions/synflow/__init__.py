"""Pruning by synaptic flow can compress networks at initialisation further than four other methods."""
