"""Pruning at initialisation: critical compressions of five methods, and the accuracy after training."""
