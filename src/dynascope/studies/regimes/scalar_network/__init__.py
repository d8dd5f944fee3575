"""Four equivalent ways to move a scalar network from lazy to rich learning: scale weights, target, input or output."""
