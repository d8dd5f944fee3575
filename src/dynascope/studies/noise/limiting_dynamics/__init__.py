"""SGD with momentum on linear regression samples a modified loss and keeps circulating in phase space."""
