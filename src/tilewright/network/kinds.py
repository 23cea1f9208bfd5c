"""The kinds of op there are, and what each of them is made of.

`mac` kinds multiply and accumulate; `vector` kinds do other arithmetic, element by element or along
a few dims; `move` kinds only say where elements lie, and may turn out to be free.
"""

from typing import Final, Literal

KindClass = Literal["mac", "vector", "move"]

_MAC = "conv conv_transpose matmul"
_VECTOR = """
max_pool average_pool lp_pool
add sub mul div pow mod min max mean atan2 bit_shift prelu where
equal not_equal less greater less_or_equal greater_or_equal and or xor not
bitwise_and bitwise_or bitwise_xor bitwise_not
relu relu6 leaky_relu elu selu celu thresholded_relu clip shrink trilu
sigmoid hard_sigmoid hard_swish swish mish tanh softplus softsign gelu erf
exp log sqrt rsqrt reciprocal abs neg sign floor ceil round square squared_difference floor_div
sin cos tan asin acos atan sinh cosh asinh acosh atanh is_nan is_inf
softmax log_softmax hardmax
layer_norm batch_norm instance_norm group_norm rms_norm lp_norm local_response_norm l2_norm
mean_variance_norm
reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_l1 reduce_l2
reduce_log_sum reduce_log_sum_exp reduce_sum_square
arg_max arg_min top_k cumsum one_hot
quantize dequantize requantize dynamic_quantize cast resize
"""
_MOVE = """
identity reshape transpose concat slice pad gather scatter expand tile
depth_to_space space_to_depth space_to_batch batch_to_space reverse
"""


def _classes() -> dict[str, KindClass]:
    classes: dict[str, KindClass] = {}
    classes.update((kind, "mac") for kind in _MAC.split())
    classes.update((kind, "vector") for kind in _VECTOR.split())
    classes.update((kind, "move") for kind in _MOVE.split())
    return classes


KIND_CLASSES: Final = _classes()
"""Every kind, in the order in which they are documented, with its class."""


def is_mac(kind: str) -> bool:
    """Whether the kind multiplies and accumulates."""
    return KIND_CLASSES[kind] == "mac"
