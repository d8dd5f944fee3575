"""Studies of features: which are learned, from how many samples, and how few are enough."""
