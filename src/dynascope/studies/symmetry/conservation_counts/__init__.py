"""The number of conservation laws of a network, computed from gradients and compared with closed forms."""
