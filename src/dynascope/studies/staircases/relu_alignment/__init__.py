"""ReLU neurons align with a few directions before the network learns."""
