"""One tile on one core: constraints, search, cost."""
