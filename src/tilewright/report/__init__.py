"""What the user sees: tables and JSON made from results; computes nothing new."""
