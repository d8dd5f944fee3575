"""Studies of features: which ones networks learn, from how many samples, and how few suffice."""
