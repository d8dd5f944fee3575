"""The number of conservation laws of a network, counted from gradients and compared with closed forms."""
