"""Conservation of synaptic saliency at every unit and cut, and its exact violations."""
