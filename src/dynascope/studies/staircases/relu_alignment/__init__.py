"""Neurons of a ReLU network turn to few directions before anything is learned."""
