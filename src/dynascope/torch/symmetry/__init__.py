"""Symmetries of modules and functions of PyTorch, read off their programs."""
