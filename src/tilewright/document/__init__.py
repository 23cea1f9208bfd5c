"""YAML files with positions: every fault of a file at once, each as `file:line:column`.

A document keeps the plain data beside the place of every key, so that whoever finds a fault later
can still say where it stands. File models are validated here and nowhere else.
"""

from tilewright.document.content import Document, Location, dotted, in_file_order, suggestion
from tilewright.document.read import parse_document, read_document, read_text
from tilewright.document.validate import faulty_keys, validate
from tilewright.document.write import (
    make_folder,
    refuse_unwritable,
    settle,
    write_files,
    write_text,
    write_texts,
)

__all__ = [
    "Document",
    "Location",
    "dotted",
    "faulty_keys",
    "in_file_order",
    "make_folder",
    "parse_document",
    "read_document",
    "read_text",
    "refuse_unwritable",
    "settle",
    "suggestion",
    "validate",
    "write_files",
    "write_text",
    "write_texts",
]
