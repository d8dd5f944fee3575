"""The least loss of a model for given compute, the product of its training time and the number of its neurons."""
