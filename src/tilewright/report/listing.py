"""What is built in: networks, machines, ops."""

from typing import Any

from tilewright.report.tables import View, table


def listing_json(what: str) -> dict[str, Any]:
    """The list as data."""
    return {what: _rows(what)}


def listing_view(what: str) -> View:
    """The list as a table."""
    rows = _rows(what)
    grid = table(*rows[0])
    for row in rows:
        grid.add_row(*(", ".join(v) if isinstance(v, list) else str(v) for v in row.values()))
    return [grid]


def _rows(what: str) -> list[dict[str, Any]]:
    match what:
        case "networks":
            return _networks()
        case "machines":
            return _machines()
        case _:
            return _ops()


def _networks() -> list[dict[str, Any]]:
    from tilewright.network.zoo import defaults, describe, names

    return [
        {
            "name": name,
            "what": describe(name),
            "options": [f"{key}={value}" for key, value in defaults(name).items()],
        }
        for name in names()
    ]


def _machines() -> list[dict[str, Any]]:
    from tilewright.machine.load import library_names, load_machine

    return [{"name": n, "what": load_machine(n).description} for n in library_names()]


def _ops() -> list[dict[str, Any]]:
    from tilewright.network.kinds import KIND_CLASSES
    from tilewright.network.onnx_reader import supported_ops as onnx_ops
    from tilewright.network.tflite_reader import supported_ops as tflite_ops

    from_onnx, from_tflite = onnx_ops(), tflite_ops()
    return [
        {
            "kind": kind,
            "class": kind_class,
            "onnx": sorted(op for op, k in from_onnx.items() if k == kind),
            "tflite": sorted(op for op, k in from_tflite.items() if k == kind),
        }
        for kind, kind_class in KIND_CLASSES.items()
    ]
