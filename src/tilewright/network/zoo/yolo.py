"""Tiny YOLO, versions 2 and 3: detectors up to their raw feature maps, without boxes or NMS."""

from tilewright.network.graph import Network, Tensor
from tilewright.network.zoo.layers import (
    Draft,
    Filter,
    activation,
    concat,
    conv,
    draft,
    given,
    max_pool,
    square,
    upsample,
)

_KEEPING_POOL = Filter(kernel=(2, 2), pads=(0, 0, 1, 1))
"""Darknet's pool of stride 1: it pads below and to the right, so the map keeps its size."""


def tiny_yolov2(*, bits: int, batch: int, size: int) -> Network:
    """Tiny YOLOv2 for Pascal VOC: 5 anchors x (20 classes + 5) = 125 channels out."""
    net = draft("tiny_yolov2", bits)
    data, _ = _backbone(net, given(net, "input", (batch, 3, size, size)))
    data = _conv_leaky(net, "8", data, 1024, square(3, 1, 1))
    return net.finish(conv(net, "conv9", data, 125, square(1)))


def tiny_yolov3(*, bits: int, batch: int, size: int) -> Network:
    """Tiny YOLOv3 for COCO: 3 anchors x (80 classes + 5) = 255 channels out, at two scales."""
    net = draft("tiny_yolov3", bits)
    data, fine = _backbone(net, given(net, "input", (batch, 3, size, size)))
    neck = _conv_leaky(net, "8", data, 256, square(1))
    data = _conv_leaky(net, "9", neck, 512, square(3, 1, 1))
    coarse_map = conv(net, "conv10", data, 255, square(1))
    data = _conv_leaky(net, "11", neck, 128, square(1))
    data = upsample(net, "upsample", data, 2)
    data = concat(net, "route", [data, fine], 1)
    data = _conv_leaky(net, "12", data, 256, square(3, 1, 1))
    fine_map = conv(net, "conv13", data, 255, square(1))
    return net.finish(coarse_map, fine_map)


def _backbone(net: Draft, data: Tensor) -> tuple[Tensor, Tensor]:
    """Seven convolutions that both versions share; the result, and conv5 before its pool."""
    activations = []
    for stage in range(1, 8):
        data = _conv_leaky(net, str(stage), data, 8 * 2**stage, square(3, 1, 1))
        activations.append(data)
        if stage < 7:
            window = square(2, 2) if stage < 6 else _KEEPING_POOL
            data = max_pool(net, f"pool{stage}", data, window)
    return data, activations[4]


def _conv_leaky(net: Draft, stage: str, data: Tensor, channels: int, window: Filter) -> Tensor:
    result = conv(net, f"conv{stage}", data, channels, window)
    return activation(net, f"leaky{stage}", result, "leaky_relu", {"alpha": 0.1})
