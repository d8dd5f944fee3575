"""How SGD on linear regression moves about its minimum: moments from the start on, modified loss and currents."""
