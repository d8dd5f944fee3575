"""Studies of margins: the limits of training on separable data."""
