"""Machines: cores, memories, engines, links, and the readers that make them."""
