"""Studies of interventions: pruning, credit assignment and regularised autoencoders."""
