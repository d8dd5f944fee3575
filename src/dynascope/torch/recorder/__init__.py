"""Recorders of PyTorch training runs."""
