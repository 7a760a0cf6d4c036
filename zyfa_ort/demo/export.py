"""SmolLM2 to ONNX with a KV cache, by torch's TorchScript exporter.

That route takes half a minute for 30 layers where the torch.export route takes minutes; both are covered by the tests.
"""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

OPSET = 17
# Sizes of the traced example. All of them stay dynamic; they differ so that none is mistaken for another.
_TOKENS, _PAST = 8, 3


def export_with_cache(model: torch.nn.Module, path: Path) -> None:
    """Writes ``model`` (a transformers causal LM) to ``path``, weights beside it in ``<name>.data``.

    Inputs: input_ids (batch, sequence), attention_mask (batch, past + sequence), past_key_values.N.key/value
    (batch, kv_heads, past, head_dim). Outputs: logits (batch, sequence, vocabulary), present.N.key/value.
    """
    import torch

    config: Any = model.config
    layers, kv_heads = config.num_hidden_layers, config.num_key_value_heads
    head_dim = config.hidden_size // config.num_attention_heads
    example = (
        torch.ones((1, _TOKENS), dtype=torch.long),
        torch.ones((1, _PAST + _TOKENS), dtype=torch.long),
        *(torch.zeros((1, kv_heads, _PAST, head_dim)) for _ in range(2 * layers)),
    )
    past = [f"past_key_values.{layer}.{kind}" for layer in range(layers) for kind in ("key", "value")]
    present = [f"present.{layer}.{kind}" for layer in range(layers) for kind in ("key", "value")]
    axes = {
        "input_ids": {0: "batch", 1: "sequence"},
        "attention_mask": {0: "batch", 1: "total_sequence"},
        "logits": {0: "batch", 1: "sequence"},
        **{name: {0: "batch", 2: "past_sequence"} for name in past},
        **{name: {0: "batch", 2: "total_sequence"} for name in present},
    }
    whole = path.with_suffix(".whole.onnx")
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the tracer warns about every shape it looks at
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        torch.onnx.export(
            _with_cache(model),
            example,
            str(whole),
            input_names=["input_ids", "attention_mask", *past],
            output_names=["logits", *present],
            dynamic_axes=axes,
            opset_version=OPSET,
            do_constant_folding=False,  # folds nothing that matters here and costs a fifth of the time
            dynamo=False,
        )
    _weights_beside(whole, path)
    whole.unlink()


def _with_cache(model: torch.nn.Module) -> torch.nn.Module:
    import torch
    from transformers.cache_utils import DynamicCache

    class WithCache(torch.nn.Module):  # type: ignore[misc]  # torch is not followed by the type checker
        """Cache tensors as plain arguments and results."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(
            self, ids: torch.Tensor, mask: torch.Tensor, *past: torch.Tensor
        ) -> tuple[torch.Tensor, ...]:
            cache = DynamicCache(list(zip(past[::2], past[1::2], strict=True)))
            result = self.model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
            present = [x for layer in result.past_key_values.layers for x in (layer.keys, layer.values)]
            return (result.logits, *present)

    return WithCache()


def _weights_beside(whole: Path, path: Path) -> None:
    import onnx_ir as ir

    ir.save(ir.load(whole), path, external_data=f"{path.name}.data")
