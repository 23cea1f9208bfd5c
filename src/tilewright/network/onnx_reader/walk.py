"""From a model to a network: every node in turn, and every problem of the file at once."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

from tilewright.errors import InputError, Problem
from tilewright.network.build import NetworkBuilder
from tilewright.network.graph import MAX_SIZE, Network
from tilewright.network.kinds import KIND_CLASSES
from tilewright.network.nests import elementwise
from tilewright.network.onnx_reader.call import Call, NodeError, Step, Value, known_array
from tilewright.network.onnx_reader.catalogue import constant_rules, op_rules
from tilewright.network.onnx_reader.dynamic import Sizes, bind_inputs, declared_shape
from tilewright.network.onnx_reader.fold import evaluate
from tilewright.network.onnx_reader.model import Declared, Graph, Model, Node, StoredTensor
from tilewright.network.onnx_reader.order import node_order
from tilewright.network.onnx_reader.protobuf import load_model
from tilewright.network.onnx_reader.quantised_groups import with_quantised_ops
from tilewright.network.onnx_reader.shapes import possible_shape
from tilewright.network.onnx_reader.stored import MAX_ELEMENTS, Array
from tilewright.network.onnx_reader.unsupported import Unsupported

_MALFORMED = (ValueError, LookupError, ArithmeticError)
"""What shape arithmetic raises on a node that makes no sense."""

_UNFOLDABLE = (*_MALFORMED, TypeError)
"""What NumPy raises, too, on values of types that do not go together."""

_MAX_KEPT_ELEMENTS = 2**23
"""Values that are kept of all constants together; what comes later is not worked out."""

_FULL = f"only the first {_MAX_KEPT_ELEMENTS} values of a model's constants are kept"
_ASSUMED_OPSET = 21
_MAX_MESSAGE = 600


def constant_of(output: str) -> str:
    """What the constant is called that an output is a copy of."""
    return f"{output} stored"


def read_network(path: Path, sizes: Sizes) -> Network:
    """The network in the file; InputError with all its problems."""
    model = load_model(path)
    reading = _Reading(path, model, sizes)
    reading.take_inputs()
    reading.take_graph(model.graph)
    outputs = reading.take_outputs(model.graph.outputs)
    problems = [*reading.problems, *reading.unsupported.problems(path)]
    if problems:
        raise InputError(*problems)
    network = reading.builder.finish(outputs)
    if not network.ops:
        message = "no node computes an output from an input"
        raise InputError(Problem(file=str(path), message=message))
    return network


def read_constants(path: Path, network: Network, names: Sequence[str]) -> dict[str, Array]:
    """Values of small constants that the reader itself works out, for the network's shapes."""
    model = load_model(path)
    shapes = {tensor.name: tensor.shape for tensor in network.inputs}
    inputs = tuple(
        replace(declared, dims=shapes.get(declared.name, declared.dims))
        for declared in model.graph.inputs
    )
    reading = _Reading(path, replace(model, graph=replace(model.graph, inputs=inputs)), {})
    reading.take_inputs()
    reading.take_graph(model.graph)
    found = {name: reading.values.get(name) for name in names}
    return {
        name: known_array(value)
        for name, value in found.items()
        if value is not None and value.is_constant and value.data is not None
    }


class _Reading:
    """What is known so far: tensors by name, the ops made, the problems found."""

    def __init__(self, path: Path, model: Model, sizes: Sizes) -> None:
        self.path = path
        self.model = model
        self.sizes = sizes
        self.builder = NetworkBuilder(path.stem, str(path))
        self.values: dict[str, Value] = {}
        self.lost: set[str] = set()
        self.problems: list[Problem] = []
        self.unsupported = Unsupported(model.functions)
        self.declared = {value.name: value for value in (*model.graph.values, *model.graph.outputs)}
        self.kept_elements = 0

    def report(self, message: str, hint: str = "") -> None:
        """Adds a problem."""
        short = message if len(message) <= _MAX_MESSAGE else f"{message[:_MAX_MESSAGE]} …"
        self.problems.append(Problem(file=str(self.path), message=short, hint=hint))

    def take_inputs(self) -> None:
        """Declares the graph's inputs, with the sizes that dynamic dims are given."""
        if "" not in self.model.opsets and self.model.graph.nodes:
            self.report(
                "the model does not say which version of ONNX's operators it uses",
                "add an opset_import for the domain ai.onnx",
            )
        bound = bind_inputs(self.model.graph.inputs, self.sizes)
        for message, hint in bound.faults:
            self.report(message, hint)
        self.lost.update(bound.lost)
        for value in bound.values:
            if value.name in self.values:
                self.report(f"input {value.name!r} is declared twice")
                continue
            self.values[value.name] = value
            self._declare(value)

    def take_graph(self, graph: Graph) -> None:
        """Reads a graph's constants and nodes."""
        graph = with_quantised_ops(graph)
        for fault in graph.faults:
            self.report(fault)
        self.lost.update(graph.lost)
        for stored in graph.constants:
            if stored.name in self.values:
                self.report(f"initialiser {stored.name!r}: a tensor of this name is there already")
                continue
            self.values[stored.name] = Value(
                name=stored.name,
                shape=stored.shape,
                element=stored.element,
                is_constant=True,
                data=stored,
            )
        order = node_order(graph.nodes)
        if order.cycle:
            names = ", ".join(str(node) for node in order.cycle[:10])
            self.report(f"nodes feed each other in a cycle: {names}")
        for node in order.unplaced:
            self.lost.update(node.outputs)
        for node in order.nodes:
            self.take_node(node)

    def take_node(self, node: Node) -> None:
        """Reads one node; whatever is wrong with it is reported, and reading goes on."""
        is_supported = self._is_supported(node)
        if not self._is_connected(node) or not is_supported:
            self._give_up(node)
            return
        try:
            self._build(node)
        except NodeError as error:
            self.report(f"{node}: {error}", error.hint)
            self._give_up(node)
        except _MALFORMED as error:
            why = str(error) if isinstance(error, ValueError) else f"malformed ({error!r})"
            self.report(f"{node}: {why}")
            self._give_up(node)

    def take_outputs(self, outputs: Sequence[Declared]) -> list[str]:
        """The names of the graph's outputs, each of which must have been made."""
        if not outputs:
            self.report("the graph has no outputs")
        for output in outputs:
            if output.name not in self.values and output.name not in self.lost:
                self.report(f"output {output.name!r} is made by no node")
        if any(output.name in self.builder.tensors for output in outputs):
            for name in dict.fromkeys(output.name for output in outputs):
                self._hand_out(name)
        return [output.name for output in outputs]

    def _hand_out(self, name: str) -> None:
        """Adds an op that copies an output which is a constant: it has to come out, too."""
        value = self.values.get(name)
        if value is None or not value.is_constant or name in self.builder.tensors:
            return
        stored = replace(value, name=constant_of(name))
        self._declare(stored)
        self.builder.op(
            name,
            "identity",
            elementwise(value.shape),
            [stored.name],
            {name: (value.element.bits, value.element.name)},
            attributes={},
        )

    def _is_supported(self, node: Node) -> bool:
        rules = (op_rules(), constant_rules(), ("If",))
        own = node.operator in self.model.functions
        if own or not any(node.operator in known for known in rules):
            self.unsupported.add(node)
            return False
        return True

    def _is_connected(self, node: Node) -> bool:
        """Whether all that the node reads is there and all that it makes is new."""
        read = Counter(name for name in node.inputs if name)
        made = Counter(name for name in node.outputs if name)
        faults = [
            f"reads {name!r}, which no node, input or initialiser makes"
            for name in read
            if name not in self.values and name not in self.lost
        ]
        faults += [
            f"makes {name!r}, which is made already"
            for name, count in made.items()
            if name in self.values or count > 1
        ]
        if not made:
            faults.append("has no result")
        for fault in faults:
            self.report(f"{node}: {fault}")
        return not faults and not any(name in self.lost for name in node.inputs)

    def _give_up(self, node: Node) -> None:
        """Goes on with what the model itself says of the node's results.

        A list may hold a shape, whose values are not known: the node that needs them has no fault.
        """
        for name in node.outputs:
            if not name or name in self.values:
                continue
            declared = self.declared.get(name)
            try:
                shape = declared_shape(declared, self.sizes) if declared else None
            except ValueError:
                shape = None
            if declared is None or declared.element is None or shape is None or len(shape) < 2:
                self.lost.add(name)
            else:
                self.values[name] = Value(name=name, shape=shape, element=declared.element)

    def _build(self, node: Node) -> None:
        inputs = tuple(self.values[name] if name else None for name in node.inputs)
        opset = self.model.opsets.get("", _ASSUMED_OPSET)
        call = Call(node=node, inputs=inputs, opset=opset)
        if node.operator == "If":
            self._inline(call)
        elif node.operator in constant_rules():
            self._keep(constant_rules()[node.operator](call))
        else:
            for step in op_rules()[node.operator].build(call):
                self._add(node, step)
        unmade = [name for name in node.outputs if name and name not in self.values]
        if unmade and not all(name in self.lost for name in unmade):
            raise ValueError(f"it has no result {unmade[0]!r}: {node.op_type} makes fewer")

    def _add(self, node: Node, step: Step) -> None:
        """Adds an op, or constants where all that it reads is constant."""
        possible_shape(step.nest.shape)
        for dim, size in step.nest.dims:
            if size > MAX_SIZE:
                raise ValueError(f"a loop of {size} steps ({dim}) is not possible")
        given = [value for value in step.inputs if value is not None]
        is_constant = not step.is_op and all(value.is_constant for value in given)
        data, why = self._folded(step, given) if is_constant else (None, "")
        for name, element in step.outputs:
            self._keep(
                Value(
                    name=name,
                    shape=step.nest.shape,
                    element=element,
                    is_constant=is_constant,
                    data=data,
                    unknown_because=why,
                    stored_bits=_stored_bits(step) if is_constant else 0,
                )
            )
        if is_constant:
            return
        for value in given:
            if value.is_constant and value.name not in self.builder.tensors:
                self._declare(value)
                self.values.setdefault(value.name, value)
        self.builder.op(
            f"{node.name}.{step.result}" if step.result else node.name,
            step.kind,
            step.nest,
            ["" if value is None else value.name for value in step.inputs],
            {name: (element.bits, element.name) for name, element in step.outputs},
            attributes=step.attributes,
        )

    def _folded(self, step: Step, given: Sequence[Value]) -> tuple[Array | None, str]:
        """The values of a constant, or why they are not known."""
        if self.kept_elements > _MAX_KEPT_ELEMENTS:
            return None, _FULL
        if prod(step.nest.shape) > MAX_ELEMENTS:
            return None, ""
        for value in given:
            if value.data is None:
                return None, value.unknown_because
        try:
            return evaluate(step, [known_array(value) for value in given]), ""
        except _UNFOLDABLE as error:
            return None, str(error)

    def _keep(self, value: Value) -> None:
        """Remembers the value, without its data where too much is remembered already."""
        data = value.data
        # Stored tensors stay in the file, and a constant of one value takes no memory.
        if data is not None and not isinstance(data, StoredTensor) and any(data.strides):
            self.kept_elements += data.size
            if self.kept_elements > _MAX_KEPT_ELEMENTS:
                value = replace(value, data=None, unknown_because=_FULL)
        self.values[value.name] = value

    def _declare(self, value: Value) -> None:
        self.builder.tensor(
            value.name,
            value.shape,
            bits=value.stored_bits or value.element.bits,
            role="constant" if value.is_constant else "input",
            dtype=value.element.name,
        )

    def _inline(self, call: Call) -> None:
        """Reads the branch that a constant condition chooses, in place of the node."""
        condition = call.value(0)
        if not condition.is_constant:
            self.unsupported.add(call.node)
            self._give_up(call.node)
            return
        chosen = "then_branch" if call.integer_at(0) else "else_branch"
        branch = call.node.attributes.get(chosen)
        if not isinstance(branch, Graph) or len(branch.outputs) != len(call.node.outputs):
            raise ValueError(f"its {chosen} is no graph with {len(call.node.outputs)} results")
        self.take_graph(branch)
        for inner, outer in zip(branch.outputs, call.node.outputs, strict=True):
            if outer:
                self.take_node(
                    Node(
                        name=f"{call.node.name}.{outer}",
                        op_type="Identity",
                        domain="",
                        inputs=(inner.name,),
                        outputs=(outer,),
                        attributes={},
                    )
                )


def _stored_bits(step: Step) -> int:
    """Bits of an element of a constant that is only unpacked or moved, not worked out."""
    data = step.inputs[0] if step.inputs else None
    if data is None:
        return 0
    if step.kind == "dequantize":
        return data.stored_bits or data.element.bits
    return data.stored_bits if KIND_CLASSES[step.kind] == "move" else 0
