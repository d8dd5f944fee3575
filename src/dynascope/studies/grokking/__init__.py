"""Studies of grokking: generalisation long after a network has fitted its training samples."""
