"""The scaling law for compute: the multilinear model's lowest loss is a power law in training time × neurons."""
