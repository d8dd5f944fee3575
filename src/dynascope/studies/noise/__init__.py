"""Studies of what the noise of batches and of labels does to descent."""
