"""The grokking time and late test error of a diagonal network with weight decay, predicted without training."""
