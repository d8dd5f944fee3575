"""Optimisers for PyTorch that conserve an energy."""
