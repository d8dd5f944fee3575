"""Neural collapse of unconstrained features along an exact path, and of networks with true and random labels."""
