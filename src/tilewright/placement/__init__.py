"""Addresses for buffers: the problem, bounds, heuristics, exact search and a checker."""
