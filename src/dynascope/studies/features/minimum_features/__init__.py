"""Training settings that reduce the features of a network to the few that its task needs."""
