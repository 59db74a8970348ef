"""Merging: the model on disk answers as base and adapter do, the base is not touched, a folder appears whole or not at
all, and its card says what it is."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from rich.console import Console
from treeagent.config import load, to_dict, to_yaml
from treeagent.errors import ModelError, RunError
from treeagent.infer.models import fingerprint
from treeagent.train import card
from treeagent.train.config import TrainConfig
from treeagent.train.merge import merge_adapter
from treeagent.train.saved import saved_change

REWARDS = {"answer_score": 0.25, "valid_interaction": 0.5, "memory_complete": 1.0}
CONSOLE = Console(file=io.StringIO())


@pytest.fixture(params=["tiny_model", "tiny_model_folder"], ids=["tied", "untied"])
def base(request: pytest.FixtureRequest) -> Path:
    """A model with tied embeddings (Qwen3) and one without (Llama)."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def run(base: Path, tmp_path: Path) -> Path:
    """The folder of a run that ended with an adapter of random weights."""
    return finished_run(tmp_path / "home" / "run", base)


def finished_run(folder: Path, base: Path) -> Path:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    lora = LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")
    tuned = get_peft_model(model, lora)
    torch.manual_seed(1)
    with torch.no_grad():
        for name, parameter in tuned.named_parameters():
            if "lora_" in name:
                parameter.normal_(std=0.1)
    tuned.save_pretrained(str(folder / "adapter"))
    words = ["--out", str(folder), "--model", str(base), "--benchmark.folder", "/home/someone/data", "--dtype", "fp32"]
    config = load(TrainConfig, None, words)
    identity = {"model": fingerprint(str(base)), "examples": "e1", "prompts": "p1", "processes": 2}
    summary = {"steps": 1, "dev": [{"step": 1, "rewards": REWARDS}], "best_step": 1, "adapter_change": 0.5}
    (folder / "config.yaml").write_text(to_yaml(config))
    (folder / "run.json").write_text(json.dumps({"digest": "d", "identity": identity}))
    (folder / "summary.json").write_text(json.dumps(summary))
    (folder / "train.jsonl").write_text(json.dumps({"step": 1, "reward": 0.75, "rewards": REWARDS}) + "\n")
    return folder


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def logits(folder: Path, adapter: Path | None = None) -> torch.Tensor:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    if adapter is not None:
        model = PeftModel.from_pretrained(model, str(adapter))
    with torch.no_grad():
        return model.eval()(input_ids=torch.arange(4, 40)[None]).logits


def test_the_merged_model_answers_as_base_and_adapter_do(run: Path, base: Path, tmp_path: Path) -> None:
    before = bytes_of(base), bytes_of(run)
    merge_adapter(str(run), str(tmp_path / "merged"), CONSOLE)
    got, want = logits(tmp_path / "merged"), logits(base, run / "adapter")
    assert (want - logits(base)).abs().max() > 0.01, "the adapter does something"
    assert torch.allclose(got, want, atol=1e-4)
    assert (bytes_of(base), bytes_of(run)) == before
    assert not any("lora" in name or "adapter" in name for name in bytes_of(tmp_path / "merged"))
    from treeagent.infer.models import load_model

    load_model(str(tmp_path / "merged"), dtype="fp32", device="cpu")  # with tokenizer and chat template


def test_a_folder_that_exists_is_refused_and_left_alone(run: Path, tmp_path: Path) -> None:
    (tmp_path / "merged").mkdir()
    with pytest.raises(RunError, match="exists already"):
        merge_adapter(str(run), str(tmp_path / "merged"), CONSOLE)
    assert list((tmp_path / "merged").iterdir()) == []


def test_another_base_is_refused_and_nothing_is_left(run: Path, tmp_path: Path) -> None:
    held = json.loads((run / "run.json").read_text())
    held["identity"]["model"] = "another"
    (run / "run.json").write_text(json.dumps(held))
    with pytest.raises(ModelError, match="is not the one that was trained"):
        merge_adapter(str(run), str(tmp_path / "merged"), CONSOLE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_an_adapter_of_no_numbers_is_refused_and_nothing_is_left(run: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    file = run / "adapter" / "adapter_model.safetensors"
    tensors = load_file(file)
    tensors[min(tensors)][:] = torch.nan
    save_file(tensors, file)
    with pytest.raises(RunError, match="is not a number"):
        merge_adapter(str(run), str(tmp_path / "merged"), CONSOLE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_a_run_that_is_not_finished_and_what_is_no_run_are_refused(tiny_model: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no training run"):
        merge_adapter(str(tiny_model), str(tmp_path / "merged"), CONSOLE)
    run = finished_run(tmp_path / "run", tiny_model)
    (run / "summary.json").unlink()
    with pytest.raises(RunError, match="is not finished"):
        merge_adapter(str(run), str(tmp_path / "merged"), CONSOLE)


def test_the_card_says_what_the_model_is_and_names_no_place(run: Path, base: Path, tmp_path: Path) -> None:
    merge_adapter(str(run), str(tmp_path / "merged"), CONSOLE)
    text = (tmp_path / "merged" / "README.md").read_text()
    head = yaml.safe_load(text.split("---")[1])
    assert head["library_name"] == "transformers"
    for part in (base.name, fingerprint(str(base)), "`e1`", "`p1`", "step 1, the best on the development split"):
        assert part in text
    assert "| 1 | 0.2500 | 0.5000 | 1.0000 |" in text  # the curve of the development split
    assert "| 1 | 0.7500 | 0.2500 | 0.5000 | 1.0000 |" in text  # the curve of training
    recipe = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])
    assert recipe["optimizer"] == to_dict(load(TrainConfig, run / "config.yaml", []))["optimizer"]
    assert recipe["benchmark"]["folder"] == "data"
    assert "/home/" not in text
    assert str(tmp_path) not in text


def test_the_card_of_an_adapter_from_the_hub_names_its_base_where_the_hub_looks_for_it(run: Path) -> None:
    training = card.of_run(run)
    settings = {**training.settings, "model": "someone/model"}
    text = card.render(card.Training(settings, training.identity, training.summary, []), merged=False)
    assert yaml.safe_load(text.split("---")[1])["base_model"] == "someone/model"
    assert "--model someone/model --adapter THIS_FOLDER" in text


@dataclass
class Hub:
    """Stands for the hub's client."""

    asked: list[Any] = field(default_factory=list)

    def create_repo(self, name: str, **options: Any) -> str:
        self.asked.append((name, options))
        return f"https://hub/{name}"

    def upload_folder(self, **options: Any) -> None:
        self.asked.append(options)


def test_nothing_is_pushed_unless_a_repository_is_named(tiny_model: Path, tmp_path: Path) -> None:
    run, hub = finished_run(tmp_path / "run", tiny_model), Hub()
    merge_adapter(str(run), str(tmp_path / "one"), CONSOLE, hub=hub)
    assert hub.asked == []
    merge_adapter(str(run), str(tmp_path / "two"), CONSOLE, push="me/mine", hub=hub)
    assert hub.asked == [
        ("me/mine", {"private": True, "exist_ok": True}),
        {"repo_id": "me/mine", "folder_path": str(tmp_path / "two")},
    ]


def test_the_size_of_a_saved_change_is_that_of_its_matrices(tiny_model: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    run = finished_run(tmp_path / "run", tiny_model)
    tensors = load_file(run / "adapter" / "adapter_model.safetensors")
    squares = [
        ((2.0 * tensors[name.replace("lora_A", "lora_B")].double() @ a.double()) ** 2).sum()
        for name, a in tensors.items()
        if "lora_A" in name
    ]
    assert saved_change(run / "adapter") == pytest.approx(float(sum(squares)) ** 0.5, rel=1e-9)
