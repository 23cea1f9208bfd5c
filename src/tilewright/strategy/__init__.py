"""How finely a network is run, and how much memory each way needs."""
