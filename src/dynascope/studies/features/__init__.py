"""Studies of features: which features networks learn, from how many samples, and how few features suffice."""
