"""Networks of depthwise-separable convolutions: MobileNetV2 and MLPerf Tiny's DS-CNN."""

from tilewright.network.graph import Network, Tensor
from tilewright.network.zoo.layers import (
    Draft,
    Filter,
    activation,
    add,
    conv,
    draft,
    flatten,
    gemm,
    given,
    global_average_pool,
    relu6,
    softmax,
    square,
)

_MOBILENET_V2 = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Table 2 of Sandler et al., 2018: expansion t, channels c, repeats n, stride s of the first."""


def mobilenetv2(*, bits: int, batch: int, size: int) -> Network:
    """MobileNetV2 with width 1.0, up to the logits."""
    net = draft("mobilenetv2", bits)
    data = given(net, "input", (batch, 3, size, size))
    data = conv(net, "features.0.conv", data, 32, square(3, 2, 1))
    data = relu6(net, "features.0.clip", data)
    rows = [
        (expansion, channels, stride if i == 0 else 1)
        for expansion, channels, repeats, stride in _MOBILENET_V2
        for i in range(repeats)
    ]
    for i, row in enumerate(rows, start=1):
        data = _inverted_residual(net, f"features.{i}", data, row)
    last = f"features.{len(rows) + 1}"
    data = conv(net, f"{last}.conv", data, 1280, square(1))
    data = relu6(net, f"{last}.clip", data)
    data = global_average_pool(net, "pool", data)
    data = flatten(net, "flatten", data)
    return net.finish(gemm(net, "classifier", data, 1000))


def ds_cnn(*, bits: int, batch: int) -> Network:
    """MLPerf Tiny's DS-CNN: 49 frames of 10 coefficients in, the odds of 12 words out."""
    net = draft("ds_cnn", bits)
    data = given(net, "input", (batch, 1, 49, 10))
    # TensorFlow's padding "same": 49 + 9 rows and 10 + 2 columns, the odd row at the bottom.
    first = Filter(kernel=(10, 4), strides=(2, 2), pads=(4, 1, 5, 1))
    data = conv(net, "conv1", data, 64, first)
    data = activation(net, "relu1", data)
    for i in range(1, 5):
        data = conv(net, f"block{i}.depthwise", data, 64, square(3, 1, 1, group=64))
        data = activation(net, f"block{i}.depthwise.relu", data)
        data = conv(net, f"block{i}.pointwise", data, 64, square(1))
        data = activation(net, f"block{i}.pointwise.relu", data)
    data = global_average_pool(net, "pool", data)
    data = flatten(net, "flatten", data)
    data = gemm(net, "fc", data, 12)
    return net.finish(softmax(net, "softmax", data))


def _inverted_residual(net: Draft, name: str, data: Tensor, row: tuple[int, int, int]) -> Tensor:
    """Expands 1x1, filters each channel 3x3, projects 1x1; adds its input where shapes allow."""
    expansion, channels, stride = row
    result = data
    if expansion > 1:
        result = conv(net, f"{name}.expand", result, expansion * data.shape[1], square(1))
        result = relu6(net, f"{name}.expand.clip", result)
    wide = result.shape[1]
    result = conv(net, f"{name}.depthwise", result, wide, square(3, stride, 1, group=wide))
    result = relu6(net, f"{name}.depthwise.clip", result)
    result = conv(net, f"{name}.project", result, channels, square(1))
    if result.shape != data.shape:
        return result
    return add(net, f"{name}.add", result, data)
