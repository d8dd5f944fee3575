"""The learned fraction of each mode of a target, and the error, of kernel regression on n samples."""
