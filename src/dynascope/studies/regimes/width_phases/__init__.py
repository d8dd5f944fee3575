"""Which parametrisations of wide networks learn features: exponents of training, measured and predicted."""
