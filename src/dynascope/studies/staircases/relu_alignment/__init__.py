"""ReLU neurons align with a few directions before the loss decreases."""
