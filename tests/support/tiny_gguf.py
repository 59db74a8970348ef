"""A GGUF file made of a small Llama's folder, by hand: its weights as they are, its tokenizer, a template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CHAT_TEMPLATE = "{{ messages[0]['content'] }}"


def write_gguf(folder: Path, path: Path) -> Path:
    """Writes the model of `folder` to `path`, with CHAT_TEMPLATE as its template."""
    import gguf
    from treeagent.infer import models

    model, tokenizer = models.load_model(str(folder), dtype="fp32", device="cpu")
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    writer.add_token_list([token for token, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])])
    writer.add_token_merges([" ".join(pair) for pair in backend["model"]["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_chat_template(CHAT_TEMPLATE)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        plain = name.removesuffix(".weight")
        if plain.endswith("q_proj"):
            tensor = _interleaved(tensor, config.num_attention_heads)
        elif plain.endswith("k_proj"):
            tensor = _interleaved(tensor, config.num_key_value_heads)
        writer.add_tensor(f"{names.get_name(plain)}.weight", tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _interleaved(tensor: Any, heads: int) -> Any:
    """Llama GGUF files hold the two halves of each head's rotary dimensions interleaved."""
    return tensor.reshape(heads, 2, -1, tensor.shape[1]).swapaxes(1, 2).reshape(tensor.shape).contiguous()
