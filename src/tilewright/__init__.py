"""Tilewright plans how a neural network runs on an accelerator."""

__version__ = "0.1.0"
