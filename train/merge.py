"""`treeagent merge-adapter RUN --to DIR`: a trained adapter and its base become one plain model.

Each weight becomes W + s B A, rounded once to the base's number format; the base on disk is only read, and must be the
one that was trained. The folder appears complete or not at all, with tokenizer and model card. Nothing is uploaded
unless a repository is named.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from ..errors import ModelError, RunError
from . import card


def merge_adapter(run: str, to: str, console: Console, *, push: str | None = None, hub: Any = None) -> None:
    """Merges the adapter of the finished run `run` into its base, as a new folder `to`. `push` names a repository of
    the Hugging Face hub, made private if it is not there; `hub` is the client to push with (None: the hub's own).

    Raises RunError for a run that is not finished and for a folder that exists, ModelError for another base.
    """
    training, target = card.of_run(Path(run)), Path(to)
    if target.exists():
        raise RunError(f"{to} exists already: name a folder that does not")
    with _appearing(target) as folder:
        _write(training, Path(run) / "adapter", folder)
    console.print(f"merged model: {to}", markup=False, highlight=False, soft_wrap=True)
    if push:
        url = _push(target, push, hub)
        console.print(f"pushed to {url}", markup=False, highlight=False, soft_wrap=True)


def _write(training: card.Training, adapter: Path, folder: Path) -> None:
    """Model, tokenizer and card."""
    import torch

    warnings.filterwarnings("ignore", module=r"(transformers|peft|torch)(\.|$)")  # to their developers
    from ..infer.models import default_model, fingerprint, load_model
    from .adapter import merged_parameters

    base = training.settings["model"] or default_model()
    if (found := fingerprint(base)) != training.identity["model"]:
        raise ModelError(
            f"model {base} is not the one that was trained: its fingerprint is {found}, the run's "
            f"{training.identity['model']}"
        )
    model, tokenizer = load_model(base, dtype=training.settings["dtype"], device="cpu", adapter=str(adapter))
    places = dict(model.named_parameters())
    for name, value in merged_parameters(model):
        if not torch.isfinite(value).all():
            raise RunError(f"{adapter}: {name} is not a number after merging; take another run")
        place = places.get(f"base_model.model.{name}")
        if place is None:  # a module with an adapter
            place = places[f"base_model.model.{name.removesuffix('.weight')}.base_layer.weight"]
        place.data = value
    model.unload().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "README.md").write_text(card.render(training, merged=True), encoding="utf-8")


@contextmanager
def _appearing(target: Path) -> Iterator[Path]:
    """A folder beside `target` that takes its name if all goes well and vanishes otherwise."""
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = target.with_name(f".{target.name}.{os.getpid()}")
    folder.mkdir()
    try:
        yield folder
        for file in folder.iterdir():
            with file.open("rb") as held:
                os.fsync(held.fileno())
        folder.rename(target)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _push(folder: Path, name: str, hub: Any) -> str:
    """Uploads the folder and gives its address. Raises ModelError if the hub refuses."""
    if hub is None:
        import huggingface_hub

        hub = huggingface_hub.HfApi()
    try:
        url = hub.create_repo(name, private=True, exist_ok=True)
        hub.upload_folder(repo_id=name, folder_path=str(folder))
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder} could not be pushed to {name}: {error}") from error
    return str(url)
