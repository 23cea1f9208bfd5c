"""The built-in zoo: well-known networks, made by code, by name.

Batch norm is folded into the convolutions, activations are ops of their own, and biases have 32
bits. No element type is given, only bits: a zoo network stands for any quantisation of it.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from tilewright.errors import InputError, Problem
from tilewright.network.graph import Network
from tilewright.network.zoo.convolutional import alexnet, lenet5, notes_cnn, squeezenet
from tilewright.network.zoo.residual import resnet18, resnet50
from tilewright.network.zoo.separable import ds_cnn, mobilenetv2
from tilewright.network.zoo.transformers import bert_base, gpt2_block, vit_tiny
from tilewright.network.zoo.yolo import tiny_yolov2, tiny_yolov3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    """A whole number that a network is built with, and which numbers it may be."""

    name: str
    default: int
    least: int = 1
    most: int = 4096
    multiple: int = 1

    @property
    def range(self) -> str:
        """What the value may be, in words."""
        step = f"a multiple of {self.multiple} " if self.multiple > 1 else ""
        return f"{step}from {self.least} to {self.most}"

    def allows(self, value: object) -> bool:
        """Whether the network can be built with the value."""
        if not isinstance(value, int) or isinstance(value, bool):
            return False
        return self.least <= value <= self.most and value % self.multiple == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A network of the zoo: one line about it, its builder, and the options the builder takes."""

    description: str
    make: Callable[..., Network]
    options: tuple[_Option, ...]


def _entry(
    make: Callable[..., Network], description: str, *options: _Option, bits: int = 8
) -> _Entry:
    shared = (_Option(name="bits", default=bits, most=64), _Option(name="batch", default=1))
    return _Entry(description=description, make=make, options=(*shared, *options))


def _size(default: int, multiple: int, least: int = 32) -> _Option:
    return _Option(name="size", default=default, least=least, multiple=multiple)


_ZOO: Final = {
    entry.make.__name__: entry
    for entry in (
        _entry(lenet5, "LeNet-5 with ReLU and max pools: digits, 32x32 gray, 10 classes"),
        _entry(alexnet, "AlexNet in two groups (Caffe's bvlc_alexnet): 227x227, 1000 classes"),
        _entry(resnet18, "ResNet-18: 1000 classes", _size(224, 32)),
        _entry(resnet50, "ResNet-50 v1.5: 1000 classes", _size(224, 32)),
        _entry(mobilenetv2, "MobileNetV2 1.0: 1000 classes", _size(224, 32)),
        _entry(squeezenet, "SqueezeNet 1.1: 1000 classes", _size(224, 1)),
        _entry(tiny_yolov2, "Tiny YOLOv2: detector, 20 classes of Pascal VOC", _size(416, 32)),
        _entry(tiny_yolov3, "Tiny YOLOv3: detector, 80 classes of COCO", _size(416, 32)),
        _entry(ds_cnn, "DS-CNN of MLPerf Tiny: keyword spotting, 49x10 features, 12 classes"),
        _entry(vit_tiny, "ViT-Ti/16: transformer on image patches, 1000 classes", _size(224, 16)),
        _entry(
            bert_base,
            "BERT base uncased: encoder of 12 layers with embeddings and pooler",
            _Option(name="sequence", default=128, most=512),
        ),
        _entry(
            gpt2_block,
            "GPT-2 small: one decoder block that extends a KV cache",
            _Option(name="tokens", default=1, most=1024),
            _Option(name="past", default=1023, least=0, most=1023),
        ),
        _entry(notes_cnn, "Three convolutions and two pools at 16 bit, 32x32 gray", bits=16),
    )
}


def names() -> tuple[str, ...]:
    """The networks there are.

    >>> names()[:3]
    ('lenet5', 'alexnet', 'resnet18')
    """
    return tuple(_ZOO)


def describe(name: str) -> str:
    """One line about a network; InputError if there is none of that name.

    >>> describe("resnet50")
    'ResNet-50 v1.5: 1000 classes'
    """
    return _find(name).description


def defaults(name: str) -> Mapping[str, int]:
    """The options of a network with their defaults; InputError if there is none of that name.

    >>> defaults("bert_base")
    {'bits': 8, 'batch': 1, 'sequence': 128}
    """
    return {option.name: option.default for option in _find(name).options}


def build(name: str, options: Mapping[str, int] | None = None) -> Network:
    """The network of that name; options that are left out have their defaults.

    Its source is `zoo:<name>`, with the options that differ: `zoo:resnet18?size=256`. Raises
    InputError for a name or an option there is not and for a value that cannot be.
    """
    entry = _find(name)
    chosen = options or {}
    known = {option.name: option for option in entry.options}
    problems = [
        _impossible_value(name, known[key], value) if key in known else _unknown_option(name, key)
        for key, value in chosen.items()
        if key not in known or not known[key].allows(value)
    ]
    if problems:
        raise InputError(*problems)
    network = entry.make(**{**defaults(name), **chosen})
    changed = [
        f"{key}={chosen[key]}"
        for key, default in defaults(name).items()
        if chosen.get(key, default) != default
    ]
    return replace(network, source=f"zoo:{name}?{'&'.join(changed)}") if changed else network


def _find(name: str) -> _Entry:
    if name in _ZOO:
        return _ZOO[name]
    near = difflib.get_close_matches(name.lower(), _ZOO, n=1)
    guess = f"did you mean {near[0]!r}?\n" if near else ""
    raise InputError(
        Problem(
            message=f"no network {name!r} in the zoo", hint=f"{guess}there are {', '.join(_ZOO)}"
        )
    )


def _unknown_option(name: str, key: str) -> Problem:
    known = defaults(name)
    near = difflib.get_close_matches(key, known, n=1)
    guess = f"did you mean {near[0]!r}?\n" if near else ""
    listed = ", ".join(f"{option}={value}" for option, value in known.items())
    return Problem(
        message=f"{name} has no option {key!r}", hint=f"{guess}its options and defaults: {listed}"
    )


def _impossible_value(name: str, option: _Option, value: int) -> Problem:
    return Problem(
        message=f"{name} cannot be built with {option.name}={value!r}",
        hint=f"{option.name} is {option.range}; {option.default} if left out",
    )
