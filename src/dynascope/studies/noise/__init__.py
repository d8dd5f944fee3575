"""Studies of minibatch and label noise in gradient descent."""
