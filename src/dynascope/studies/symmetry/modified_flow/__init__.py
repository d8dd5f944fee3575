"""Distance of gradient descent from gradient flow and from a modified flow."""
