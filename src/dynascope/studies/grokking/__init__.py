"""Studies of grokking: generalisation long after the training samples are fitted."""
