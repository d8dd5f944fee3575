"""Neural collapse: exact for unconstrained features, and measured in networks with true and random labels."""
