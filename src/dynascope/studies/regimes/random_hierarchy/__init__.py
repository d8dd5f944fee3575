"""Sample complexity and synonym sensitivity of networks that learn a random hierarchy."""
