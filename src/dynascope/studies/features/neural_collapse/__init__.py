"""Neural collapse: exact theory for unconstrained features, and networks trained on true or random labels."""
