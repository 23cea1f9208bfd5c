"""Tables of the documentation that are worked out from the code."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from click.testing import CliRunner

from tilewright.cli import tilewright
from tilewright.network.onnx_reader import supported_ops as onnx_ops
from tilewright.network.tflite_reader import supported_ops as tflite_ops

_JOBS = Path(__file__).resolve().parents[1] / "tests" / "zigzag_files"
_LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """MACs of a network as someone else counts them; None where no figure was found."""

    network: str
    macs: float | None
    source: str
    note: str = ""


_TORCHVISION = "torchvision's model pages"
_MODEL_ZOO = "Open Model Zoo (half of its FLOPs)"
_DARKNET = "Darknet's model table (half of its FLOPs)"
_SURVEY = "Sze et al., Proc. IEEE 105 (2017), Table 2"

PUBLISHED = (
    Published(
        network="light_bvlc_alexnet",
        macs=724e6,
        source=_SURVEY,
        note="the file has an input of 224 x 224 and no padding; the figure is for 227 x 227",
    ),
    Published(network="light_densenet121", macs=2.834e9, source=_TORCHVISION),
    Published(network="light_inception_v1", macs=1.43e9, source=_SURVEY),
    Published(
        network="light_inception_v2",
        macs=4.058e9 / 2,
        source=_MODEL_ZOO,
        note="its FLOPs include more than MACs",
    ),
    Published(network="light_resnet50", macs=4.089e9, source=_TORCHVISION),
    Published(
        network="light_shufflenet",
        macs=133e6,
        source="Zhang et al., CVPR 2018, Table 1, four groups",
        note="the file has half the channels and no bottlenecks, and groups its first 1 x 1 too",
    ),
    Published(network="light_squeezenet", macs=0.349e9, source=_TORCHVISION, note="SqueezeNet 1.1"),
    Published(network="light_vgg19", macs=19.632e9, source=_TORCHVISION),
    Published(
        network="light_zfnet512",
        macs=None,
        source="",
        note="the paper's ZF net has fewer channels",
    ),
    Published(
        network="lenet5",
        macs=340_908,
        source="LeCun et al., Proc. IEEE 86 (1998)",
        note="connections, with biases and pools; its second convolution has 60 of our 96 pairs",
    ),
    Published(network="alexnet", macs=724e6, source=_SURVEY),
    Published(network="resnet18", macs=1.814e9, source=_TORCHVISION),
    Published(network="resnet50", macs=4.089e9, source=_TORCHVISION),
    Published(network="mobilenetv2", macs=300e6, source="Sandler et al., CVPR 2018, Table 4"),
    Published(network="squeezenet", macs=0.349e9, source=_TORCHVISION),
    Published(network="tiny_yolov2", macs=6.97e9 / 2, source=_DARKNET),
    Published(network="tiny_yolov3", macs=5.56e9 / 2, source=_DARKNET),
    Published(
        network="ds_cnn",
        macs=5.4e6 / 2,
        source="Zhang et al., Hello Edge (2017), DS-CNN-S (half of its operations)",
        note="given with two digits",
    ),
    Published(
        network="vit_tiny",
        macs=1.3e9,
        source="timm's model card of DeiT-Ti",
        note="given with two digits",
    ),
    Published(
        network="bert_base",
        macs=22.5e9 / 2,
        source="Sun et al., ACL 2020 (half of its FLOPs)",
        note="its FLOPs include more than MACs",
    ),
    Published(network="gpt2_block", macs=None, source="", note="one block of twelve"),
    Published(network="notes_cnn", macs=None, source="", note="a network of our own"),
)


def _json(*arguments: str) -> dict[str, Any]:
    """What a command prints with `--json`."""
    result = CliRunner().invoke(tilewright, [*arguments, "--json"])
    if result.exit_code:
        raise SystemExit(f"tilewright {' '.join(arguments)}: {result.output}")
    found: dict[str, Any] = json.loads(result.output)
    return found


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a column whose name starts with `>` is right-aligned."""
    names = [name.removeprefix(">") for name in head]
    rules = ["---:" if name.startswith(">") else "---" for name in head]
    lines = (f"| {' | '.join(row)} |" for row in (names, rules, *rows))
    return "\n".join(lines) + "\n"


def counted(network: str) -> int:
    """MACs that Tilewright counts for a zoo network or for a model in the onnx wheel."""
    path = _LIGHT / f"{network}.onnx"
    name = str(path) if path.is_file() else network
    total: int = _json("show", name)["totals"]["macs"]
    return total


def _macs_row(entry: Published) -> list[str]:
    ours = counted(entry.network)
    here = f"{ours:,}"
    if entry.macs is None:
        return [f"`{entry.network}`", "none found", here, "", "", entry.note]
    difference = f"{ours / entry.macs - 1:+.1%}".replace("-0.0%", "0.0%").replace("+0.0%", "0.0%")
    published = f"{entry.macs / 1e6:,.4g} M" if entry.macs < 1e9 else f"{entry.macs / 1e9:.4g} G"
    return [f"`{entry.network}`", published, here, difference, entry.source, entry.note]


def _macs() -> str:
    head = ("network", ">published", ">Tilewright", ">difference", "source", "note")
    return _table(head, (_macs_row(entry) for entry in PUBLISHED))


def _macs_in_short() -> str:
    shown = ("light_vgg19", "resnet50", "mobilenetv2", "bert_base")
    head = ("network", ">published", ">Tilewright", ">difference")
    rows = (_macs_row(entry)[:4] for entry in PUBLISHED if entry.network in shown)
    return _table(head, rows)


def _kinds() -> str:
    rows = (
        [f"`{row['kind']}`", row["class"], _names(row["onnx"]), _names(row["tflite"])]
        for row in _json("list", "ops")["ops"]
    )
    return _table(("kind", "class", "ONNX operators", "TFLite operators"), rows)


def _names(operators: Sequence[str]) -> str:
    return ", ".join(f"`{operator}`" for operator in operators)


def _readers() -> str:
    rows = _json("list", "ops")["ops"]
    from_onnx = sum(len(row["onnx"]) for row in rows)
    from_tflite = sum(len(row["tflite"]) for row in rows)
    networks = len(_json("list", "networks")["networks"])
    machines = len(_json("list", "machines")["machines"])
    return _table(
        ("what", "from"),
        (
            ["networks", f"ONNX (`.onnx`), {from_onnx} operators"],
            ["", f"TFLite (`.tflite`), {from_tflite} operators"],
            ["", "ZigZag workload files (`.yaml`)"],
            ["", f"a zoo of {networks} networks, by name"],
            ["machines", "our YAML format, with units"],
            ["", "ZigZag accelerator files in both of their dialects"],
            ["", f"a library of {machines} machines, by name"],
            ["mappings", "ZigZag mapping files"],
        ),
    )


def _worked_out() -> str:
    """Operators that leave no op, as a list."""
    lines = (
        f"* {file}: {_names([name for name, kind in ops().items() if kind == 'constant'])}\n"
        for file, ops in (("ONNX", onnx_ops), ("TFLite", tflite_ops))
    )
    return "".join(lines)


def _zigzag() -> str:
    """Layers of one job as ZigZag itself costed them, and as Tilewright does."""
    job = json.loads((_JOBS / "expected.json").read_text("utf-8"))[0]
    options = (
        "--objective",
        job["options"]["opt"],
        "--lpf-limit",
        str(job["options"]["lpf_limit"]),
    )
    files = (job["workload"], "--on", job["accelerator"], "--mapping", job["mapping"])
    ours = {op["name"]: op for op in _json("map", *files, *options, "--model", "zigzag-3.9")["ops"]}
    rows = (
        [
            f"`{layer['name']}`",
            f"{layer['latency']:,.0f}",
            f"{ours[layer['name']]['cycles']:,.0f}",
            f"{layer['energy']:,.3f} pJ",
            f"{ours[layer['name']]['energy_pj']:,.3f} pJ",
        ]
        for layer in job["layers"]
    )
    head = ("layer", ">cycles, ZigZag", ">Tilewright", ">energy, ZigZag", ">Tilewright")
    return _table(head, rows)


def _vela() -> str:
    """Columns of Vela's summary, with our keys and their values for one plan."""
    network, machine = "ds_cnn", "ethos_u65_256"
    shown = _json("show", network)["totals"]
    clock_hz = _json("show", machine)["clock_hz"]
    plan = _json("plan", network, "--on", machine)
    totals, busy = plan["totals"], plan["bounds"]["engine_cycles"]
    peak, traffic = totals["peak_bytes"], totals["traffic_bytes"]
    rows = (
        (
            "inference_time",
            "`totals.cycles` over the clock",
            f"{totals['cycles'] / clock_hz:.3g} s",
        ),
        ("cycles_total", "`totals.cycles`", f"{totals['cycles']:,}"),
        ("cycles_npu", "`bounds.engine_cycles`, the core", f"{busy['core[0]']:,}"),
        ("sram_memory_used", "`totals.peak_bytes.sram`", f"{peak['sram']:,} B"),
        ("dram_memory_used", "`totals.peak_bytes.dram`", f"{peak['dram']:,} B"),
        ("sram_total_bytes", "`totals.traffic_bytes.sram`", _both(traffic["sram"])),
        ("dram_total_bytes", "`totals.traffic_bytes.dram`", _both(traffic["dram"])),
        ("nn_macs", "`totals.macs` of `show`", f"{shown['macs']:,}"),
        (
            "total_original_weights",
            "`totals.weight_bytes` of `show`",
            f"{shown['weight_bytes']:,} B",
        ),
        ("total_npu_encoded_weights", "none: weights are not compressed", ""),
    )
    cells = ([f"`{column}`", key, value] for column, key, value in rows)
    return _table(("column of Vela", "here, with `--json`", ">value"), cells)


def _both(traffic: Mapping[str, int]) -> str:
    return f"{traffic['read']:,} B read, {traffic['write']:,} B written"


TABLES: Mapping[str, Callable[[], str]] = {
    "kinds": _kinds,
    "macs": _macs,
    "macs in short": _macs_in_short,
    "readers": _readers,
    "vela": _vela,
    "worked out": _worked_out,
    "zigzag": _zigzag,
}
