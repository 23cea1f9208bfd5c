"""Proof: a checker that looks, an emulator that runs."""
