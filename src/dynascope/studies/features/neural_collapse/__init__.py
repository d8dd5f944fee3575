"""Classes collapse: free features along the exact path of theory, and networks whatever their labels mean."""
