"""A model that fits noisy labels exactly: harmless if its strong modes hold the target, harmful if they do not."""
