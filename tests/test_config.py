"""Recipes and overrides: what is accepted, what is refused, and what the refusal says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treeagent.config import Budget, differing, keys, load, nearest, option, to_dict, to_yaml
from treeagent.errors import ConfigError
from treeagent.recipe import find


@dataclass(frozen=True)
class Sampling:
    temperature: float = option(0.0, "0 is greedy")
    seed: int = option(42, "seed")


@dataclass(frozen=True)
class Reader:
    agent: str = option(help="who reads")
    observe: Literal["flat", "tree"] = "flat"


@dataclass(frozen=True)
class Recipe:
    model: str = option(help="the model")
    rate: float = option(1e-5, "learning rate")
    budget: Budget = option(5000, "tokens")
    lengths: tuple[int, ...] = option((2000,), "lengths")
    readers: tuple[Reader, ...] = option((), "readers")
    sampling: Sampling = option(Sampling(seed=7), "sampling")
    options: dict[str, Any] = option({}, "free options")
    adapter: Path | None = option(None, "adapter")
    traces: bool = option(False, "traces")

    def __post_init__(self) -> None:
        if self.model == "inert" and self.traces:
            raise ConfigError("traces: this model leaves none")


@dataclass(frozen=True)
class Outer:
    inner: Reader = option(help="required as a whole")


def read(tmp_path: Path, text: str, *overrides: str, cls: type[Any] = Recipe) -> Any:
    path = tmp_path / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    return load(cls, path, overrides)


def refusal(tmp_path: Path, text: str, *overrides: str, cls: type[Any] = Recipe) -> str:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text, *overrides, cls=cls)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(str(tmp_path / "recipe.yaml"), "FILE")


def test_a_recipe_sets_what_it_names_and_leaves_the_defaults(tmp_path: Path) -> None:
    config = read(tmp_path, "model: m\nsampling: {temperature: 0.5}\nreaders: [{agent: a, observe: tree}]\n")
    assert config == Recipe(model="m", sampling=Sampling(temperature=0.5), readers=(Reader("a", "tree"),))


def test_a_number_in_scientific_notation_without_a_point_is_a_number(tmp_path: Path) -> None:
    assert read(tmp_path, "model: m\nrate: 5e-6\n").rate == 5e-6
    assert read(tmp_path, "model: m\n", "--rate", "5e-6").rate == 5e-6


def test_an_override_wins_over_the_recipe_and_the_last_one_over_the_first(tmp_path: Path) -> None:
    words = ("--sampling.temperature", "1", "--budget=64", "--budget=32")
    config = read(tmp_path, "model: m\nbudget: 16\nsampling: {seed: 1}\n", *words)
    assert (config.budget, config.sampling) == (32, Sampling(temperature=1.0, seed=1))


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--model", "2024"], "model", "2024"),
        (["--model", "no"], "model", "no"),
        (["--model=--x=1"], "model", "--x=1"),
        (["--adapter", "null"], "adapter", None),
        (["--adapter", "runs/a"], "adapter", Path("runs/a")),
        (["--traces"], "traces", True),
        (["--traces", "false"], "traces", False),
        (["--lengths", "1,2"], "lengths", (1, 2)),
        (["--lengths", "[3]"], "lengths", (3,)),
        (["--rate", "-1"], "rate", -1.0),
        (["--options.max-x", "4"], "options", {"max-x": 4}),
        (["--readers", "[{agent: b}]"], "readers", (Reader("b"),)),
    ],
)
def test_a_word_is_read_as_the_key_needs_it(tmp_path: Path, words: Sequence[str], name: str, value: object) -> None:
    assert getattr(read(tmp_path, "model: m\n", *words), name) == value


def test_a_key_may_be_typed_with_dashes(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Short:
        max_tokens: int = 1

    assert read(tmp_path, "", "--max-tokens", "4", cls=Short).max_tokens == 4


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("modl: m", [], "FILE: modl: unknown key; did you mean model?"),
        (
            "model: m\nsampling: {temprature: 1}",
            [],
            "FILE: sampling.temprature: unknown key; did you mean sampling.temperature?",
        ),
        (
            "model: m\nreaders: [{agent: a}, {agnt: b}]",
            [],
            "FILE: readers[1].agnt: unknown key; did you mean readers[1].agent?",
        ),
        ("model: m", ["--temperature", "1"], "--temperature: unknown option; did you mean --sampling.temperature?"),
        ("model: m", ["--sampling.sead", "1"], "--sampling.sead: unknown option; did you mean --sampling.seed?"),
        ("model: m", ["--sampling", "{sead: 1}"], "--sampling: sead: unknown key; did you mean seed?"),
        ("rate: 1", [], "FILE: missing: model; set it in the recipe or give --model VALUE"),
        ("model: 5", [], "FILE: model: 5 is not text; put it in quotes"),
        ("model: m\nrate: hot", [], "FILE: rate: 'hot' is not a number"),
        ("model: m", ["--rate", "hot"], "--rate: 'hot' is not a number"),
        ("model: m\nbudget: true", [], "FILE: budget: true is not a whole number"),
        ("model: m\nsampling: {seed: true}", [], "FILE: sampling.seed: true is not a whole number"),
        ("model: m", ["--budget", "true"], "--budget: true is not a whole number"),
        ("model: m\nbudget: 15", [], "FILE: budget: 15 is too small; the least is 16"),
        ("model: m", ["--budget", "15"], "--budget: 15 is too small; the least is 16"),
        (
            "model: m\nreaders: [{agent: a, observe: flt}]",
            [],
            "FILE: readers[0].observe: 'flt' is not one of flat, tree; did you mean flat?",
        ),
        ("model: m\nsampling: 3", [], "FILE: sampling: 3 is not a mapping of keys to values"),
        ("model: m\nlengths: 3", [], "FILE: lengths: 3 is not a list; write [A, B]"),
        ("model: m", ["stray"], "unexpected argument 'stray': settings are given as --key value"),
        ("model: m", ["--budget"], "--budget needs a value"),
        ("model: inert", ["--traces"], "FILE: traces: this model leaves none"),
        ("- a", [], "FILE: not a recipe: it must be a mapping of keys to values, not a list"),
        ("model: m\nmodel: n", [], "FILE: not a recipe: line 2, column 1: the key 'model' is given twice"),
    ],
)
def test_a_mistake_gives_one_line_with_place_key_and_remedy(
    tmp_path: Path, text: str, words: Sequence[str], message: str
) -> None:
    assert refusal(tmp_path, text, *words) == message


def test_missing_keys_of_a_missing_part_are_all_named(tmp_path: Path) -> None:
    assert (
        refusal(tmp_path, "", cls=Outer)
        == "FILE: missing: inner.agent; set it in the recipe or give --inner.agent VALUE"
    )
    assert load(Outer, None, ["--inner.agent", "a"]) == Outer(Reader("a"))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("model: [", "line 1, column 9"),
        ("a: b: c", "line 1, column 5"),
        ("\tmodel: m", "line 1, column 1"),
        ("model: !!python/object/apply:os.getcwd []", "line 1, column 8"),
        ("model: m\n---\nmodel: n\n", "line 2, column 1"),
    ],
)
def test_broken_yaml_is_placed_by_line_and_column(tmp_path: Path, text: str, place: str) -> None:
    assert refusal(tmp_path, text).startswith(f"FILE: not a recipe: {place}: ")


@pytest.mark.parametrize("data", [b"model: \xff", b"model: \x00", b"[" * 5000])
def test_bytes_that_are_no_recipe_are_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match="recipe"):
        load(Recipe, path, [])


def test_an_unreadable_recipe_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(Recipe, tmp_path, [])


def test_a_recipe_is_found_by_name_by_path_and_inside_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    packaged = find("demo", "data")
    assert packaged == find("configs/data/demo.yaml", "data")
    assert packaged.is_file()
    own = tmp_path / "configs" / "data" / "demo.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("")
    assert find("demo", "data").resolve() == own
    with pytest.raises(ConfigError, match=r"no such recipe; give a file or one of: .*demo"):
        find("dmo", "data")
    with pytest.raises(ConfigError, match="this is none"):
        find("configs", "data")


def test_keys_are_listed_dotted_with_the_defaults_of_the_outer_value() -> None:
    listed = {key.name: key for key in keys(Recipe)}
    assert list(listed)[:3] == ["model", "rate", "budget"]
    assert listed["model"].required
    assert (listed["sampling.seed"].default, listed["sampling.seed"].help) == (7, "seed")
    assert "sampling" not in listed


texts = st.text(max_size=8)
samplings = st.builds(Sampling, st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**60), 2**60))
recipes = st.builds(
    Recipe,
    model=texts.filter(lambda text: text != "inert"),
    rate=st.floats(allow_nan=False, allow_infinity=False),
    budget=st.integers(16, 10**6),
    lengths=st.lists(st.integers(0, 9), max_size=3).map(tuple),
    readers=st.lists(st.builds(Reader, texts, st.sampled_from(["flat", "tree"])), max_size=2).map(tuple),
    sampling=samplings,
    options=st.dictionaries(texts, st.one_of(st.none(), st.booleans(), st.integers(-9, 9), texts), max_size=2),
    adapter=st.none() | st.sampled_from([Path("a"), Path("/b/c")]),
    traces=st.booleans(),
)


@given(recipes)
def test_the_resolved_recipe_read_again_is_the_same(tmp_path_factory: pytest.TempPathFactory, config: Recipe) -> None:
    folder = tmp_path_factory.mktemp("again")
    assert read(folder, to_yaml(config)) == config


@given(recipes, recipes)
def test_keys_differ_where_configurations_do(a: Recipe, b: Recipe) -> None:
    assert bool(differing(to_dict(a), to_dict(b))) == (to_dict(a) != to_dict(b))


def test_differing_keys_are_named_dotted() -> None:
    a, b = {"x": 1, "y": {"z": 2, "w": 3}}, {"x": 1, "y": {"z": 4}, "v": 0}
    assert differing(a, b) == ["v", "y.w", "y.z"]


def test_nothing_is_suggested_for_a_word_unlike_all_names() -> None:
    assert nearest("qqqq", ["model", "budget"]) is None
    assert nearest("observe", ["agent.observe", "model"]) == "agent.observe"


@dataclass(frozen=True)
class Folder:
    from_: str | None = option(None, "a folder")


@dataclass(frozen=True)
class Kept:
    inner: Folder = option(Folder())
    class_: int = option(1)


def test_a_key_that_python_keeps_for_itself_is_spelled_plainly(tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    recipe.write_text("inner: {from: here}\nclass: 2\n")
    assert [key.name for key in keys(Kept)] == ["inner.from", "class"]
    config = load(Kept, recipe, ["--class", "3"])
    assert config == Kept(Folder("here"), 3)
    assert to_dict(config) == {"inner": {"from": "here"}, "class": 3}
    recipe.write_text(to_yaml(config))
    assert load(Kept, recipe) == config
    recipe.write_text("inner: {form: x}\n")
    with pytest.raises(ConfigError, match=r"inner\.form: unknown key; did you mean inner\.from"):
        load(Kept, recipe)
    with pytest.raises(ConfigError, match=r"--inner\.from needs a value"):
        load(Kept, None, ["--inner.from"])
