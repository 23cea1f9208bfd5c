"""ZigZag's API: `from tilewright.compat.zigzag import get_hardware_performance_zigzag`.

The functions take the parameters of `zigzag.api` in ZigZag 3.9.1, read the same files and return
the same figures in the same shape. What differs:

* Results are frozen values that hold plain data: operands, loops and memories are strings, not
  ZigZag's classes; a layer's `accelerator` is the machine's name.
* Faults of the input are told as `InputError` or `InfeasibleError`, with a place and a remedy, where
  ZigZag ends in an assertion, a `KeyError` or "no valid loop ordering". Machine files in the port
  dialect of ZigZag 3.8.1 and before are read too.
* A layer without a mapping for one generated unrolling is mapped with the others; ZigZag gives up.
* `salsa` is our own annealing search, with a fixed seed; it looks for what `opt` says.
* `get_hardware_performance_zigzag_imc` takes the options by keyword, too.
* Layers from ONNX are numbered by their place in the network, not by their node in the file.
* `loop_ordering.txt` is written anew, in a form that `tilewright map --mapping` reads back;
  `mem_hierarchy.png` is not drawn; the pickle holds our values. Nothing is logged or shown on the
  way, whatever `loma_show_progress_bar` says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, overload

from onnx import ModelProto

from tilewright.compat.zigzag_files import write_dumps, write_pickle
from tilewright.compat.zigzag_results import CostModelEvaluation, LayerNode, evaluation, sum_of
from tilewright.errors import InputError, Problem
