"""Neural collapse: exact theory for unconstrained features, and measurements in networks with true or random labels."""
