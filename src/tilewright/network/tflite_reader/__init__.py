"""Reads TFLite files; light to import, the `tflite` package is loaded when a file is read."""

from tilewright.network.tflite_reader.read import read_tflite
from tilewright.network.tflite_reader.registry import supported_ops

__all__ = ["read_tflite", "supported_ops"]
