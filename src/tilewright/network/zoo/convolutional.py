"""Plain convolutional networks: LeNet-5, AlexNet, SqueezeNet and the five layers of `notes_cnn`."""

from dataclasses import replace

from tilewright.network.graph import Network, Tensor
from tilewright.network.zoo.layers import (
    Draft,
    Filter,
    activation,
    concat,
    conv,
    draft,
    flatten,
    gemm,
    given,
    global_average_pool,
    local_response_norm,
    max_pool,
    softmax,
    square,
)


def lenet5(*, bits: int, batch: int) -> Network:
    """LeNet-5 (LeCun et al., 1998) for 32x32 gray images, with max pools and ReLU."""
    net = draft("lenet5", bits)
    data = given(net, "input", (batch, 1, 32, 32))
    for stage, channels in (("1", 6), ("2", 16)):
        data = _conv_relu(net, stage, data, channels, square(5))
        data = max_pool(net, f"pool{stage}", data, square(2, 2))
    data = flatten(net, "flatten", data)
    for stage, features in (("3", 120), ("4", 84)):
        data = gemm(net, f"fc{stage}", data, features)
        data = activation(net, f"relu{stage}", data)
    return net.finish(gemm(net, "fc5", data, 10))


def notes_cnn(*, bits: int, batch: int) -> Network:
    """Three 3x3 convolutions without padding or bias, with a 2x2 pool between them."""
    net = draft("notes_cnn", bits)
    window = replace(square(3), bias=False)
    data = given(net, "input", (batch, 1, 32, 32))
    data = conv(net, "conv1", data, 16, window)
    data = max_pool(net, "pool1", data, square(2, 2))
    data = conv(net, "conv2", data, 32, window)
    data = max_pool(net, "pool2", data, square(2, 2))
    return net.finish(conv(net, "conv3", data, 64, window))


def alexnet(*, bits: int, batch: int) -> Network:
    """AlexNet (Krizhevsky et al., 2012) in two groups, as Caffe's `bvlc_alexnet` has it."""
    net = draft("alexnet", bits)
    data = given(net, "input", (batch, 3, 227, 227))
    for stage, channels, window in ((1, 96, square(11, 4)), (2, 256, square(5, 1, 2, group=2))):
        data = _conv_relu(net, str(stage), data, channels, window)
        data = local_response_norm(net, f"norm{stage}", data, 5)
        data = max_pool(net, f"pool{stage}", data, square(3, 2))
    for stage, channels, group in ((3, 384, 1), (4, 384, 2), (5, 256, 2)):
        data = _conv_relu(net, str(stage), data, channels, square(3, 1, 1, group=group))
    data = max_pool(net, "pool5", data, square(3, 2))
    data = flatten(net, "flatten", data)
    for stage in (6, 7):
        data = gemm(net, f"fc{stage}", data, 4096)
        data = activation(net, f"relu{stage}", data)
    data = gemm(net, "fc8", data, 1000)
    return net.finish(softmax(net, "prob", data))


def squeezenet(*, bits: int, batch: int, size: int) -> Network:
    """SqueezeNet 1.1 (Iandola et al., 2016) up to the logits; pools round up, as in torchvision."""
    net = draft("squeezenet", bits)
    pool = replace(square(3, 2), ceil_mode=True)
    data = given(net, "input", (batch, 3, size, size))
    data = _conv_relu(net, "1", data, 64, square(3, 2))
    data = max_pool(net, "pool1", data, pool)
    for stage, squeeze in zip(range(2, 10), (16, 16, 32, 32, 48, 48, 64, 64), strict=True):
        data = _fire(net, f"fire{stage}", data, squeeze)
        if stage in (3, 5):
            data = max_pool(net, f"pool{stage}", data, pool)
    data = _conv_relu(net, "10", data, 1000, square(1))
    data = global_average_pool(net, "pool10", data)
    return net.finish(flatten(net, "flatten", data))


def _conv_relu(net: Draft, stage: str, data: Tensor, channels: int, window: Filter) -> Tensor:
    return activation(net, f"relu{stage}", conv(net, f"conv{stage}", data, channels, window))


def _fire(net: Draft, name: str, data: Tensor, squeeze: int) -> Tensor:
    """Squeezes to few channels, then expands each fourfold twice, by 1x1 and by 3x3."""
    data = conv(net, f"{name}.squeeze", data, squeeze, square(1))
    data = activation(net, f"{name}.squeeze.relu", data)
    narrow = conv(net, f"{name}.expand1x1", data, 4 * squeeze, square(1))
    narrow = activation(net, f"{name}.expand1x1.relu", narrow)
    wide = conv(net, f"{name}.expand3x3", data, 4 * squeeze, square(3, 1, 1))
    wide = activation(net, f"{name}.expand3x3.relu", wide)
    return concat(net, f"{name}.concat", [narrow, wide], 1)
