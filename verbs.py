"""What each verb of the command line takes, and the function that it calls.

Verbs that take a recipe find their configuration class and their function by name, so that help and `--dry-run` load
only the class; the others import what they run when they run it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .annotations import bounds, noun
from .config import Key, keys, load, suggestion, to_yaml
from .errors import ConfigError
from .parsing import Parser, budget, named, positive
from .recipe import find


@dataclass(frozen=True)
class Verb:
    """A command: its line in the general help, and what it does with the words after its name."""

    summary: str
    run: Callable[[Sequence[str]], None]


# Verbs on a document.


def _document_parser(verb: str, description: str, *, format: bool = True) -> Parser:
    parser = Parser(verb, description=description)
    parser.add_argument("path", metavar="FILE", help="the document; - reads standard input")
    if format:
        parser.add_argument("--format", metavar="F", help="format of the document (default: by suffix; json for -)")
    return parser


def _sections(words: Sequence[str]) -> None:
    parser = _document_parser("sections", "Splits a document into sections along its tree and lists them.")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument(
        "--budget",
        metavar="C",
        type=budget,
        default=5000,
        help="base budget in tokens (default: 5000); the budget used may be up to 2C-1, so that there are no more "
        "sections than flat windows of C tokens where that is possible",
    )
    sizes.add_argument("--exact-budget", metavar="B", type=budget, help="use this budget as it is")
    parser.add_argument(
        "--tokenizer",
        metavar="T",
        type=named,
        help="Hugging Face name or folder, .gguf file, or tiktoken:NAME (default: the demo model's, if installed)",
    )
    parser.add_argument("--json", action="store_true", dest="as_json", help="one JSON object a line, totals last")
    arguments = parser.read(words)
    from .infer.show import sections

    sections(**vars(arguments))


def _ask(words: Sequence[str]) -> None:
    parser = _document_parser("ask", "Lets an agent read a document and answer one question.", format=False)
    parser.usage = "treeagent ask FILE QUESTION [--key value ...]"
    parser.add_argument("question", metavar="QUESTION", help="the question")
    cls = _named("infer.config:Ask")
    if "-h" in words or "--help" in words:
        _add_settings(parser, cls, "settings")
        parser.print_help()
        return
    first = next((i for i, word in enumerate(words) if word.startswith("--")), len(words))
    given = parser.read(words[:first])
    config = load(cls, None, words[first:])
    _named("infer.ask:ask")(given.path, given.question, config)


def _prompts(words: Sequence[str]) -> None:
    description = """Shows an agent's prompts, or reads their released wording out of your own clone of the agent's
repository into a folder that the agent's option `prompts` can name. Nothing of the clone is run."""
    if not words or words[0] in ("-h", "--help"):
        usage = "treeagent prompts show AGENT [--folder DIR]\n       treeagent prompts import AGENT CLONE --to DIR"
        Parser("prompts", description=description, usage=usage).print_help()
        return
    if words[0] not in ("show", "import"):
        raise ConfigError(f"prompts: unknown action {words[0]!r}; {suggestion(words[0], ['show', 'import'])}")
    from .terminal import console

    parser = Parser(f"prompts {words[0]}", description=description)
    parser.add_argument("agent", metavar="AGENT", help="the agent's name, such as memagent")
    if words[0] == "show":
        parser.add_argument("--folder", metavar="DIR", type=named, help="show the wording in this folder, not ours")
        arguments = parser.read(words[1:])
        _named("infer.prompts:show")(arguments.agent, console(), folder=arguments.folder)
    else:
        parser.add_argument("clone", metavar="CLONE", help="folder with your clone of the agent's repository")
        parser.add_argument("--to", metavar="DIR", type=named, required=True, help="folder that the wording goes to")
        arguments = parser.read(words[1:])
        _named("infer.prompts:import_prompts")(arguments.agent, arguments.clone, arguments.to, console())


# Verbs on a recipe.


@dataclass(frozen=True)
class Recipe:
    """A verb that runs `function(config, console)`, both named as `module:name` inside the package."""

    verb: str
    folder: str
    config: str
    function: str
    description: str

    def run(self, words: Sequence[str]) -> None:
        """Reads the recipe and the settings, then runs the command or prints what it would run with."""
        cls = self.read_class()
        if "-h" in words or "--help" in words:
            self._parser(cls).print_help()
            return
        if not words or words[0].startswith("-"):
            raise ConfigError(f"the recipe comes first: treeagent {self.verb} RECIPE --key value")
        dry = "--dry-run" in words
        config = load(cls, find(words[0], self.folder), [word for word in words[1:] if word != "--dry-run"])
        if dry:
            print(f"# treeagent {self.verb}, resolved\n{to_yaml(config)}", end="")
            return
        from .terminal import console

        _named(self.function)(config, console(markup=True))

    def read_class(self) -> type:
        """The configuration class."""
        return _named(self.config)

    def _parser(self, cls: type) -> Parser:
        parser = Parser(
            self.verb,
            description=self.description,
            usage=f"treeagent {self.verb} RECIPE [--dry-run] [--key value ...]",
            epilog=f"example: treeagent {self.verb} configs/{self.folder}/demo.yaml --dry-run",
        )
        parser.add_argument("recipe", metavar="RECIPE", help="a YAML file, or the name of one in the package: demo")
        parser.add_argument("--dry-run", action="store_true", help="print the resolved recipe and do nothing")
        _add_settings(parser, cls, "settings, the keys of the recipe")
        return parser


def _add_settings(parser: Parser, cls: type, title: str) -> None:
    settings = parser.add_argument_group(title)
    for key in keys(cls):
        settings.add_argument(f"--{key.name}", metavar=noun(key.annotation), help=_key_help(key))


def _named(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(f".{module}", __package__), attribute)


def _key_help(key: Key) -> str:
    notes = ["required" if key.required else f"default: {_spelled(key.default)}", bounds(key.annotation)]
    return f"{key.help} ({'; '.join(filter(None, notes))})".strip().replace("%", "%%")


def _spelled(value: Any) -> str:
    """A default as it is typed on the command line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, tuple | list):
        return ",".join(map(_spelled, value)) or "[]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_spelled(inner)}" for name, inner in value.items()) + "}"
    return str(value) or "''"


def _report(words: Sequence[str]) -> None:
    parser = Parser("report", description="Prints the table of finished or interrupted evaluations again.")
    parser.add_argument("runs", metavar="RUN", nargs="+", help="an evaluation's run folder, such as runs/demo/eval")
    arguments = parser.read(words)
    from .terminal import console

    _named("infer.report:report")(arguments.runs, console(markup=True))


def _validate(words: Sequence[str]) -> None:
    parser = Parser(
        "validate",
        description="Checks a benchmark by other parsers and another execution of its questions than it was made with.",
    )
    parser.add_argument("folder", metavar="DATASET", help="folder that `treeagent build` made")
    parser.add_argument(
        "--tokenizers",
        metavar="A,B",
        type=lambda word: tuple(filter(None, word.split(","))),
        default=(),
        help="tokenizers that lengths are checked under (default: those of the benchmark that are installed)",
    )
    parser.add_argument("--num-proc", metavar="N", type=positive, default=1, help="processes (default: 1)")
    arguments = parser.read(words)
    from .terminal import console

    _named("data.validate:validate")(**(vars(arguments) | {"console": console(markup=True)}))


def _merge(words: Sequence[str]) -> None:
    parser = Parser(
        "merge-adapter",
        description="Merges the adapter of a finished training run into its base, as a new folder with a model card.",
    )
    parser.add_argument("run", metavar="RUN", help="the run folder of `treeagent train`")
    parser.add_argument("--to", metavar="DIR", type=named, required=True, help="folder to make")
    parser.add_argument("--push", metavar="NAME", type=named, help="also upload it, private, as this repository")
    arguments = parser.read(words)
    from .terminal import console

    _named("train.merge:merge_adapter")(arguments.run, arguments.to, console(markup=True), push=arguments.push)


BUILD = Recipe(
    "build",
    "data",
    "data.build:BuildConfig",
    "data.build:build",
    "Builds a benchmark from public sources or your own documents: a folder of parquet files with a dataset card,\n"
    "byte for byte the same for the same recipe. Only this command downloads, and only from the hosts of its recipe.",
)
EVALUATE = Recipe(
    "evaluate",
    "eval",
    "infer.config:EvaluateConfig",
    "infer.evaluate:evaluate",
    "Lets agents read the documents of a benchmark in every way the recipe lists, and scores their answers.\n"
    "Results are kept one by one; the same command continues an interrupted run.",
)
TRAIN = Recipe(
    "train",
    "train",
    "train.config:TrainConfig",
    "train.grpo:train",
    "Trains a LoRA adapter by GRPO over the same environment that `evaluate` uses.\n"
    "On several processes: accelerate launch -m treeagent.train RECIPE",
)

VERBS = {
    "sections": Verb("split a document into sections along its tree and list them", _sections),
    "ask": Verb("answer one question over one document", _ask),
    "prompts": Verb("show the agents' prompts, or import their released wording", _prompts),
    "build": Verb("build a benchmark from a recipe", BUILD.run),
    "validate": Verb("check a benchmark independently of how it was made", _validate),
    "evaluate": Verb("run and score agents on a benchmark, from a recipe", EVALUATE.run),
    "report": Verb("print the tables of evaluation runs again", _report),
    "train": Verb("fine-tune a model by GRPO, from a recipe", TRAIN.run),
    "merge-adapter": Verb("merge a trained adapter into its base model", _merge),
}
