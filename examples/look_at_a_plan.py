"""Plans a network, looks at the plan, and asks what would make it faster."""

import tilewright

plan = tilewright.plan("lenet5", "edge_tpu_like", objective="latency")
print(repr(plan))

plan.save("out/look")
print("as planned:", tilewright.replay("out/look").agrees)

first = tilewright.explain(plan).bottleneck
if first is not None:
    print(f"{first.what}: {first.cycles:,} cycles")

lean = tilewright.plan("lenet5", "edge_tpu_like", objective="energy")
for change in tilewright.compare(plan, lean).totals[:2]:
    print(f"{change.name}: {change.before:,.0f} -> {change.after:,.0f}")
