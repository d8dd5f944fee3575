"""The lowest loss of the multilinear model for given compute, the product of training time and number of neurons."""
