"""Symmetries of PyTorch modules and functions, found in their exported programs."""
