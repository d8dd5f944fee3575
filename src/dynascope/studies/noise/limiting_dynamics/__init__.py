"""In linear regression, SGD samples the Gibbs distribution of a modified loss and circulates in phase space."""
