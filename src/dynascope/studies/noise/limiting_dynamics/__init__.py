"""In linear regression, SGD with momentum samples the Gibbs law of a modified loss and circulates in phase space."""
