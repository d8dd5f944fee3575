"""Neural collapse follows an exact theory for unconstrained features and also occurs in trained networks."""
