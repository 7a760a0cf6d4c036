"""The model families of the corpus: configuration class of transformers and its sizes. All have two layers, 64 token ids
and random weights; what is left out is the default of transformers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

VOCABULARY: Final = {"vocab_size": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
LAYERS: Final = {"num_hidden_layers": 2}
WINDOW: Final = 5
ROTARY: Final = (
    VOCABULARY | LAYERS | {"hidden_size": 32, "intermediate_size": 32, "max_position_embeddings": 256}
)
GROUPED: Final = ROTARY | {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64}
# Without a head_dim of its own: two heads of 64.
PLAIN: Final = VOCABULARY | LAYERS | {"hidden_size": 128, "intermediate_size": 64, "num_attention_heads": 2}
LAYER_TYPES: Final = {"sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention"]}


@dataclass(frozen=True)
class Family:
    """config    name of a configuration class of transformers
    sizes     its arguments
    model     name of the class that makes the model from it
    """

    config: str
    sizes: Mapping[str, Any]
    model: str = "AutoModelForCausalLM"


FAMILIES: Final[dict[str, Family]] = {
    "bert": Family("BertConfig", PLAIN | {"max_position_embeddings": 64}, "AutoModel"),
    "bloom": Family("BloomConfig", VOCABULARY | {"n_layer": 2, "hidden_size": 128, "n_head": 2}),
    "clip": Family("CLIPTextConfig", PLAIN | {"max_position_embeddings": 32}, "CLIPTextModel"),
    "deepseek_v3": Family(
        "DeepseekV3Config",
        ROTARY
        | {
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "q_lora_rank": 32,
            "kv_lora_rank": 32,
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "first_k_dense_replace": 2,
        },
    ),
    "gemma2": Family(
        "Gemma2Config",
        GROUPED
        | LAYER_TYPES
        | {
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 256,
            "query_pre_attn_scalar": 256,
        },
    ),
    "gpt2": Family(
        "GPT2Config",
        VOCABULARY | {"n_layer": 2, "n_embd": 128, "n_head": 2, "n_inner": 64, "n_positions": 256},
    ),
    "gpt_oss": Family(
        "GptOssConfig", GROUPED | LAYER_TYPES | {"num_local_experts": 4, "num_experts_per_tok": 2}
    ),
    "llama": Family("LlamaConfig", GROUPED),
    "llama_mha": Family(
        "LlamaConfig", GROUPED | {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 128}
    ),
    "mistral": Family("MistralConfig", GROUPED | {"head_dim": 128, "sliding_window": WINDOW}),
    "opt": Family(
        "OPTConfig",
        VOCABULARY
        | LAYERS
        | {
            "hidden_size": 128,
            "word_embed_proj_dim": 128,
            "ffn_dim": 64,
            "num_attention_heads": 2,
            "max_position_embeddings": 256,
        },
    ),
    "phi": Family("PhiConfig", PLAIN | {"intermediate_size": 32, "max_position_embeddings": 256}),
    "qwen2": Family("Qwen2Config", GROUPED),
    "qwen3": Family("Qwen3Config", GROUPED | {"head_dim": 128}),
    "qwen3_moe": Family(
        "Qwen3MoeConfig",
        GROUPED | {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
    ),
    "t5": Family(
        "T5Config",
        VOCABULARY
        | {
            "d_model": 32,
            "d_kv": 64,
            "d_ff": 32,
            "num_heads": 2,
            "num_layers": 2,
            "decoder_start_token_id": 0,
        },
        "T5ForConditionalGeneration",
    ),
    "vit": Family(
        "ViTConfig",
        LAYERS
        | {
            "hidden_size": 128,
            "intermediate_size": 64,
            "num_attention_heads": 2,
            "image_size": 32,
            "patch_size": 8,
        },
        "ViTModel",
    ),
    "whisper": Family(
        "WhisperConfig",
        VOCABULARY
        | {
            "d_model": 128,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "num_mel_bins": 16,
            "max_source_positions": 20,
            "max_target_positions": 64,
            "decoder_start_token_id": 1,
        },
        "WhisperForConditionalGeneration",
    ),
}
