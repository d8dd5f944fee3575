"""SGD with momentum on linear regression near the minimum: moments, modified loss and currents."""
