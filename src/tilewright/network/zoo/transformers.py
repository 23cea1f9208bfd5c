"""Transformers: ViT-Ti/16, the BERT base encoder and one decoder block of GPT-2 small.

Every head has 64 features; the factor 1/√64 = 1/8 of the attention scores is folded into the
query's weights, as batch norm is elsewhere. A linear layer on a three-axis tensor is a MatMul and
an Add, as ONNX exports it; GPT-2's are Gemms between two reshapes, also as exported. Masks are
inputs that are added to the scores.
"""

from dataclasses import dataclass

from tilewright.errors import InputError, Problem
from tilewright.network.graph import Network, Tensor
from tilewright.network.zoo.layers import (
    Draft,
    activation,
    add,
    bias,
    concat,
    constant,
    conv,
    draft,
    expand,
    flatten,
    gemm,
    given,
    given_indices,
    layer_norm,
    look_up,
    matmul,
    reshape,
    softmax,
    square,
    take,
    transpose,
)

_HEAD = 64
_GPT2_CONTEXT = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heads:
    """Query (batch, head, token, feature), key with the last two axes swapped, and value."""

    query: Tensor
    key: Tensor
    value: Tensor


def vit_tiny(*, bits: int, batch: int, size: int) -> Network:
    """ViT-Ti/16 (Touvron et al., 2021): 12 layers of width 192 with 3 heads, and a class token."""
    net = draft("vit_tiny", bits)
    data = given(net, "input", (batch, 3, size, size))
    data = conv(net, "patches.conv", data, 192, square(16, 16))
    patches = data.shape[2] * data.shape[3]
    data = reshape(net, "patches.flatten", data, (batch, 192, patches))
    data = transpose(net, "patches.transpose", data, (0, 2, 1))
    token = constant(net, "class_token", (1, 1, 192))
    if batch > 1:
        token = expand(net, "class_token.expand", token, (batch, 1, 192))
    data = concat(net, "embeddings.concat", [token, data], 1)
    positions = constant(net, "embeddings.position", (1, patches + 1, 192))
    data = add(net, "embeddings.add", data, positions)
    for i in range(12):
        name = f"encoder.{i}"
        normal = layer_norm(net, f"{name}.norm1", data, 1e-6)
        data = add(net, f"{name}.add1", data, _self_attention(net, f"{name}.attention", normal))
        normal = layer_norm(net, f"{name}.norm2", data, 1e-6)
        data = add(net, f"{name}.add2", data, _feed_forward(net, f"{name}.mlp", normal))
    data = layer_norm(net, "norm", data, 1e-6)
    data = take(net, "class_token.take", data, 1, (0, 1))
    data = flatten(net, "flatten", data)
    return net.finish(gemm(net, "head", data, 1000))


def bert_base(*, bits: int, batch: int, sequence: int) -> Network:
    """BERT base uncased (Devlin et al., 2018): the last hidden states and the pooled one."""
    net = draft("bert_base", bits)
    words = given_indices(net, "input_ids", (batch, sequence))
    segments = given_indices(net, "token_type_ids", (batch, sequence))
    mask = given(net, "attention_mask", (batch, 1, 1, sequence))
    word_table = constant(net, "embeddings.word.weight", (30522, 768))
    segment_table = constant(net, "embeddings.token_type.weight", (2, 768))
    position_table = constant(net, "embeddings.position.weight", (512, 768))
    data = look_up(net, "embeddings.word", word_table, words)
    other = look_up(net, "embeddings.token_type", segment_table, segments)
    data = add(net, "embeddings.add1", data, other)
    other = take(net, "embeddings.position", position_table, 0, (0, sequence))
    data = add(net, "embeddings.add2", data, other)
    data = layer_norm(net, "embeddings.norm", data, 1e-12)
    for i in range(12):
        name = f"encoder.{i}"
        other = _self_attention(net, f"{name}.attention", data, mask)
        data = add(net, f"{name}.add1", data, other)
        data = layer_norm(net, f"{name}.norm1", data, 1e-12)
        data = add(net, f"{name}.add2", data, _feed_forward(net, f"{name}.mlp", data))
        data = layer_norm(net, f"{name}.norm2", data, 1e-12)
    first = take(net, "pooler.take", data, 1, (0, 1))
    first = flatten(net, "pooler.flatten", first)
    pooled = gemm(net, "pooler.dense", first, 768)
    return net.finish(data, activation(net, "pooler.tanh", pooled, "tanh"))


def gpt2_block(*, bits: int, batch: int, tokens: int, past: int) -> Network:
    """One block of GPT-2 small (Radford et al., 2019) that adds `tokens` to a cache of `past`.

    Inputs are the hidden states, the cached keys and values (unless `past` is 0) and, with more
    than one token, the mask that hides later tokens. Raises InputError beyond 1024 tokens in all.
    """
    if tokens + past > _GPT2_CONTEXT:
        raise InputError(
            Problem(
                message=f"gpt2_block: {tokens} tokens and {past} past ones exceed the context of "
                f"{_GPT2_CONTEXT}",
                hint=f"tokens + past may be {_GPT2_CONTEXT} at most",
            )
        )
    net = draft("gpt2_block", bits)
    hidden = given(net, "hidden_states", (batch, tokens, 768))
    cached = (batch, 12, past, _HEAD)
    past_key = [given(net, "past_key", cached)] if past else []
    past_value = [given(net, "past_value", cached)] if past else []
    mask = given(net, "attention_mask", (1, 1, tokens, past + tokens)) if tokens > 1 else None
    normal = layer_norm(net, "ln_1", hidden, 1e-5)
    qkv = _gpt2_linear(net, "attention.qkv", normal, 3 * 768)
    query, key, value = (
        _split_heads(
            net,
            f"attention.{part}",
            take(net, f"attention.{part}", qkv, 2, (768 * i, 768 * (i + 1))),
        )
        for i, part in enumerate(("query", "key", "value"))
    )
    key = concat(net, "present_key", [*past_key, key], 2)
    value = concat(net, "present_value", [*past_value, value], 2)
    turned = transpose(net, "attention.key.transpose", key, (0, 1, 3, 2))
    heads = _Heads(query=query, key=turned, value=value)
    context = _attend(net, "attention", heads, mask)
    data = add(net, "add1", hidden, _gpt2_linear(net, "attention.project", context, 768))
    normal = layer_norm(net, "ln_2", data, 1e-5)
    wide = _gpt2_linear(net, "mlp.expand", normal, 3072)
    wide = activation(net, "mlp.gelu", wide, "gelu", {"approximate": "tanh"})
    data = add(net, "add2", data, _gpt2_linear(net, "mlp.project", wide, 768))
    return net.finish(data, key, value)


def _self_attention(net: Draft, name: str, data: Tensor, mask: Tensor | None = None) -> Tensor:
    width = data.shape[-1]
    query, key, value = (
        _linear(net, f"{name}.{part}", data, width) for part in ("query", "key", "value")
    )
    heads = _Heads(
        query=_split_heads(net, f"{name}.query", query),
        key=_split_heads(net, f"{name}.key", key, (0, 2, 3, 1)),
        value=_split_heads(net, f"{name}.value", value),
    )
    return _linear(net, f"{name}.project", _attend(net, name, heads, mask), width)


def _attend(net: Draft, name: str, heads: _Heads, mask: Tensor | None) -> Tensor:
    """Softmax(query · key [+ mask]) · value, with the heads side by side again."""
    scores = matmul(net, f"{name}.scores", heads.query, heads.key)
    if mask is not None:
        scores = add(net, f"{name}.mask", scores, mask)
    weights = softmax(net, f"{name}.softmax", scores)
    context = matmul(net, f"{name}.context", weights, heads.value)
    context = transpose(net, f"{name}.context.transpose", context, (0, 2, 1, 3))
    batch, tokens, count, features = context.shape
    return reshape(net, f"{name}.context.merge", context, (batch, tokens, count * features))


def _split_heads(
    net: Draft, name: str, data: Tensor, perm: tuple[int, ...] = (0, 2, 1, 3)
) -> Tensor:
    batch, tokens, width = data.shape
    data = reshape(net, f"{name}.split", data, (batch, tokens, width // _HEAD, _HEAD))
    return transpose(net, f"{name}.heads", data, perm)


def _feed_forward(net: Draft, name: str, data: Tensor) -> Tensor:
    """Four times as wide, the exact GELU, and back."""
    width = data.shape[-1]
    wide = _linear(net, f"{name}.expand", data, 4 * width)
    wide = activation(net, f"{name}.gelu", wide, "gelu", {"approximate": "none"})
    return _linear(net, f"{name}.project", wide, width)


def _linear(net: Draft, name: str, data: Tensor, features: int) -> Tensor:
    weights = constant(net, f"{name}.weight", (data.shape[-1], features))
    product = matmul(net, name, data, weights)
    return add(net, f"{name}.add", product, bias(net, f"{name}.bias", features))


def _gpt2_linear(net: Draft, name: str, data: Tensor, features: int) -> Tensor:
    batch, tokens, width = data.shape
    rows = reshape(net, f"{name}.flatten", data, (batch * tokens, width))
    result = gemm(net, name, rows, features, transposed=False)
    return reshape(net, f"{name}.unflatten", result, (batch, tokens, features))
