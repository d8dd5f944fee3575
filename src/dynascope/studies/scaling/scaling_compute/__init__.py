"""The scaling law of compute: the multilinear model's lowest loss for a budget of training time × neurons."""
