"""The cycle model of Arm's Ethos-U: an op's blocks, its cycles, and its accesses to memories.

It follows the estimates of Arm's compiler Vela 5.2.0 (its Python core, for U55 and U65), so that
plans of both can be compared: see `docs/explanation/ethos-u-model.md`.
"""
