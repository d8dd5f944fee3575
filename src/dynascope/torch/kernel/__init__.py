"""The neural tangent kernel of PyTorch modules and functions."""
