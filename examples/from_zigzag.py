"""A script for ZigZag in which one import was changed."""

from pathlib import Path

from tilewright.compat.zigzag import get_hardware_performance_zigzag

files = Path(__file__).parent / "zigzag" / "fixed"
energy, latency, evaluations = get_hardware_performance_zigzag(
    workload=str(files / "workload.yaml"),
    accelerator=str(files / "machine.yaml"),
    mapping=str(files / "mapping.yaml"),
    opt="latency",
    lpf_limit=6,
    dump_folder="out/zigzag",
)
print(f"{energy:.1f} pJ, {latency:.0f} cycles")
for layer, _ in evaluations[0][1]:
    print(layer.layer, layer.energy_total, layer.latency_total2, layer.stall_slack_comb)
    print(" ", layer.temporal_mapping["O"])
print(sorted(path.name for path in Path("out/zigzag").iterdir()))
