"""What ops compute, tile by tile, in NumPy."""
