"""Norms of normalised layers under momentum, weight decay and minibatches."""
