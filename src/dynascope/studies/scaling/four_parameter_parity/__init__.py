"""A network with four parameters learns a parity neuron by neuron, at predicted times."""
