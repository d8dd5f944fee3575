"""Synaptic saliency is conserved at every unit and across every cut, except for predicted violations."""
