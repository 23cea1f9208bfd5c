"""Simulates the tasks of one plan again under every rule for which transfer goes first."""

from typing import get_args

import tilewright
from tilewright.schedule.options import KeyRule, Policy
from tilewright.schedule.order import order_of
from tilewright.schedule.search import keys_of
from tilewright.schedule.simulate import simulate
from tilewright.schedule.tables import tables_of

network = tilewright.load_network("mobilenetv2")
plan = tilewright.plan(network, tilewright.load_machine("npu_37xx"))

tables = tables_of(plan.program)
order = order_of(tables, range(len(plan.program.tasks)))
for key in get_args(KeyRule):
    policy = Policy(key=key, margin=None)
    run = simulate(tables, order, policy, keys_of(order, policy))
    print(f"{key:16} {run.now:,} cycles")
