"""Studies of interventions: changes to networks and losses, with a theory of their effect."""
