"""Order problems for tests: graphs written as text, and an obvious way to get their least peak."""

from collections.abc import Iterator, Sequence

from tilewright.program.order import OrderOp, OrderProblem


def graph(edges: str, sizes: dict[str, int], in_place: Sequence[str] = ()) -> OrderProblem:
    """Ops such as `b<a c<a d<b,c`, each writing one tensor of its own name; `x<` reads nothing.

    What no op reads is an output.
    """
    reads = {op: [r for r in read.split(",") if r] for op, _, read in _parted(edges)}
    number = {name: position for position, name in enumerate(reads)}
    used = {read for all_reads in reads.values() for read in all_reads}
    return OrderProblem(
        ops=tuple(
            OrderOp(
                name=op,
                reads=tuple(number[r] for r in read),
                writes=(number[op],),
                in_place=op in in_place,
            )
            for op, read in reads.items()
        ),
        sizes_bytes=tuple(sizes.get(op, 1) for op in reads),
        inputs=(),
        outputs=tuple(number[op] for op in reads if op not in used),
    )


def _parted(edges: str) -> list[tuple[str, str, str]]:
    return [part.partition("<") for part in edges.split()]


def names(problem: OrderProblem, order: Sequence[int]) -> list[str]:
    return [problem.ops[op].name for op in order]


def every_order(problem: OrderProblem) -> Iterator[tuple[int, ...]]:
    """All orders in which no op runs before what it reads."""

    def extend(done: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(done) == len(problem.ops):
            yield done
        there = {t for op in done for t in problem.ops[op].writes} | set(problem.inputs)
        for number, op in enumerate(problem.ops):
            if number not in done and there.issuperset(op.reads):
                yield from extend((*done, number))

    return extend(())


def obvious_peak(problem: OrderProblem, order: Sequence[int]) -> int:
    """The largest of the bytes alive during each op."""
    return max(obvious_bytes(problem, order), default=0)


def obvious_bytes(problem: OrderProblem, order: Sequence[int]) -> list[int]:
    """Bytes alive during each op as they are defined, tensor by tensor."""
    made = dict.fromkeys(problem.inputs, -1)
    made.update((t, at) for at, op in enumerate(order) for t in problem.ops[op].writes)
    last = {t: at for at, op in enumerate(order) for t in problem.ops[op].reads}
    last.update(dict.fromkeys(problem.outputs, len(order)))
    during = []
    for at, number in enumerate(order):
        op = problem.ops[number]
        need = sum(
            size
            for tensor, size in enumerate(problem.sizes_bytes)
            if made[tensor] < at <= last.get(tensor, -1)
        )
        need += sum(problem.sizes_bytes[t] for t in op.writes)
        if op.in_place and op.writes:
            size = problem.sizes_bytes[op.writes[0]]
            alike = [t for t in op.reads if problem.sizes_bytes[t] == size]
            if alike and last[alike[0]] == at:
                need -= size
        during.append(need)
    return during
