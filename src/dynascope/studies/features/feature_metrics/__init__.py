"""Strength, usefulness and use of a network's features when all layers or only the last layer is trained."""
