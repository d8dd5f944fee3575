"""Networks that learn arithmetic modulo p: the fit, the late generalisation, and the features on the way."""
