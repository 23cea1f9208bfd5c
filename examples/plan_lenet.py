"""Plans LeNet-5 and looks at what the plan does."""

import tilewright

network = tilewright.load_network("lenet5")
machine = tilewright.load_machine("edge_tpu_like")
plan = tilewright.plan(network, machine)
print(f"{plan.cycles:,} cycles, no schedule of these tiles beats {plan.bounds.cycles:,}")

for task, slot in list(zip(plan.program.tasks, plan.timetable.slots, strict=True))[:4]:
    print(f"{slot.start_cycle:6}-{slot.end_cycle:<6} {task.engine:8} {task.name}")

plan.save("out/lenet5")
