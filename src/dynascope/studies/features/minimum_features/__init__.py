"""Several training settings reduce the features of a network towards the few that its task needs."""
