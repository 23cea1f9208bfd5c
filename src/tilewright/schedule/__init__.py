"""Time and place together: a schedule that never needs more memory than there is."""
