"""A network of four parameters learns a parity neuron by neuron, at the times that its equations predict."""
