"""The grokking time and late test error of a diagonal network with weight decay are predictable without training."""
