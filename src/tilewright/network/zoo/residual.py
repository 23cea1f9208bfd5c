"""Residual networks: ResNet-18 and ResNet-50 (He et al., 2015), as torchvision has them."""

from collections.abc import Callable

from tilewright.network.graph import Network, Tensor
from tilewright.network.zoo.layers import (
    Draft,
    activation,
    add,
    conv,
    draft,
    flatten,
    gemm,
    given,
    global_average_pool,
    max_pool,
    square,
)

Block = Callable[[Draft, str, Tensor, int, int], Tensor]


def resnet18(*, bits: int, batch: int, size: int) -> Network:
    """ResNet-18: eight blocks of two 3x3 convolutions."""
    net = draft("resnet18", bits)
    return _residual(net, (batch, 3, size, size), (2, 2, 2, 2), _basic_block)


def resnet50(*, bits: int, batch: int, size: int) -> Network:
    """ResNet-50: sixteen bottlenecks, whose 3x3 convolution has the stride (torchvision's v1.5)."""
    net = draft("resnet50", bits)
    return _residual(net, (batch, 3, size, size), (3, 4, 6, 3), _bottleneck)


def _residual(net: Draft, shape: tuple[int, ...], depths: tuple[int, ...], block: Block) -> Network:
    data = given(net, "input", shape)
    data = conv(net, "conv1", data, 64, square(7, 2, 3))
    data = activation(net, "relu", data)
    data = max_pool(net, "maxpool", data, square(3, 2, 1))
    for layer, depth in enumerate(depths):
        for i in range(depth):
            stride = 2 if layer > 0 and i == 0 else 1
            data = block(net, f"layer{layer + 1}.{i}", data, 64 * 2**layer, stride)
    data = global_average_pool(net, "avgpool", data)
    data = flatten(net, "flatten", data)
    return net.finish(gemm(net, "fc", data, 1000))


def _basic_block(net: Draft, name: str, data: Tensor, channels: int, stride: int) -> Tensor:
    result = conv(net, f"{name}.conv1", data, channels, square(3, stride, 1))
    result = activation(net, f"{name}.relu1", result)
    result = conv(net, f"{name}.conv2", result, channels, square(3, 1, 1))
    return _join(net, name, data, result, stride)


def _bottleneck(net: Draft, name: str, data: Tensor, channels: int, stride: int) -> Tensor:
    result = conv(net, f"{name}.conv1", data, channels, square(1))
    result = activation(net, f"{name}.relu1", result)
    result = conv(net, f"{name}.conv2", result, channels, square(3, stride, 1))
    result = activation(net, f"{name}.relu2", result)
    result = conv(net, f"{name}.conv3", result, 4 * channels, square(1))
    return _join(net, name, data, result, stride)


def _join(net: Draft, name: str, data: Tensor, result: Tensor, stride: int) -> Tensor:
    """The block's sum; its input passes a 1x1 convolution where the shapes differ."""
    if data.shape != result.shape:
        data = conv(net, f"{name}.downsample", data, result.shape[1], square(1, stride))
    return activation(net, f"{name}.relu", add(net, f"{name}.add", result, data))
