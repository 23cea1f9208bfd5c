"""Plans a network whose second op is of a kind that Tilewright did not know."""

import onnx
from onnx import TensorProto, helper

import tilewright
from tilewright.replay.verify import verify

nodes = [
    helper.make_node("Conv", ["image", "weight"], ["conv"], name="conv", pads=[1, 1, 1, 1]),
    helper.make_node("Cube", ["conv"], ["result"], name="cube", domain="com.example"),
]
image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 16, 16])
result = helper.make_tensor_value_info("result", TensorProto.FLOAT, [1, 8, 16, 16])
values = [(n % 7 - 3) / 8 for n in range(8 * 3 * 3 * 3)]
weight = helper.make_tensor("weight", TensorProto.FLOAT, [8, 3, 3, 3], values)
graph = helper.make_graph(nodes, "small", [image], [result], [weight])
domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
onnx.save(helper.make_model(graph, opset_imports=domains), "small.onnx")

network = tilewright.load_network("small.onnx", bits=8)
plan = tilewright.plan(network, tilewright.load_machine("edge_tpu_like"))
for task in plan.program.tasks:
    if task.kind == "compute":
        print(task.engine, task.name, f"{task.cycles:,} cycles")
print("results agree:", verify(plan.timetable, network).agrees)
