"""The scaling law for compute: the multilinear model's lowest loss for a budget of training time × neurons."""
