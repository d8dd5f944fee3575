"""Studies of margins, and of what classifiers end in."""
