"""Prediction, without training, of when a diagonal network with weight decay groks and of its late test error."""
