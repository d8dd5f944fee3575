"""On linear regression, SGD with momentum samples the Gibbs distribution of a modified loss and keeps circulating."""
