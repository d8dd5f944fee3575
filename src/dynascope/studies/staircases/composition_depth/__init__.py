"""Depth reduces the width needed to compose k group elements: one layer, k − 1 steps, or ⌈log₂ k⌉ levels."""
