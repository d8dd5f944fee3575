"""Depth saves width: composition of k group elements in one layer, in k − 1 steps, or in ⌈log₂ k⌉ levels."""
