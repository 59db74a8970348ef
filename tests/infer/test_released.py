"""Finding released prompts in source text: from clones in the shape of the real ones, with sentences of our own."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from agent_clones import BOXED, CLONES, EVALUATION, MEMAGENT, MEMORY, SAID, TOOL, final
from hypothesis import given
from hypothesis import strategies as st
from treeagent.errors import InputError
from treeagent.infer.agents import released
from treeagent.infer.agents.templates import NAMES_OF_PROMPTS, PLACES, Template, load

RECURRENT, INFMEM = f"{EVALUATION}/recurrent.py", f"{EVALUATION}/infmem.py"


def read(agent: str, files: Mapping[str, str]) -> dict[str, str]:
    """The prompts of a clone by name."""
    found = released.read(agent, {file: files[file] for file in released.files(agent)})
    return {prompt.prompt: prompt.text for prompt in found}


def refusal(agent: str, files: Mapping[str, str]) -> str:
    """Why the prompts of a clone cannot be read, in one line."""
    with pytest.raises(InputError) as caught:
        read(agent, files)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(params=list(CLONES))
def agent(request: pytest.FixtureRequest) -> str:
    return request.param


def test_each_prompt_of_an_agent_has_a_place_in_its_repository() -> None:
    assert {name: set(found) for name, found in NAMES_OF_PROMPTS.items()} == {
        name: set(origins) for name, origins in released.ORIGINS.items()
    }
    assert released.REPOSITORIES.keys() == NAMES_OF_PROMPTS.keys()


def test_a_template_that_begins_with_a_newline_keeps_it() -> None:
    plan = read("infmem", CLONES["infmem"])["plan"]
    assert plan.startswith("\nCall `retrievesearch`")
    assert plan.endswith("CURRENT MEMORY:\n{memory}\n\n")


def test_the_tool_message_of_infmem_is_ours_with_the_released_descriptions() -> None:
    ours, theirs = load("infmem", "system").source, read("infmem", CLONES["infmem"])["system"]
    schema = (
        'Looks words up in the whole text. Parameters: {"type": "object", "properties": {"query": {"type": "string", '
        '"description": "Words – the rarer the better."}, "top_k": {"type": "integer", "description": "How many.", '
        '"minimum": 3, "maximum": 20, "default": 8}}, "required": ["query"]}'
    )
    assert f"\nretrievesearch: {schema} " in theirs
    line = re.compile(r"retrievesearch: .* Parameters: \{.*\}")
    assert line.sub("", ours) == line.sub("", theirs)
    assert line.findall(ours) != line.findall(theirs)


def test_line_ends_of_another_system_do_not_change_a_prompt(agent: str) -> None:
    windows = {name: text.replace("\n", "\r\n") for name, text in CLONES[agent].items()}
    assert read(agent, windows) == read(agent, CLONES[agent])


def test_released_prompts_differ_from_ours_in_nothing_but_wording(agent: str) -> None:
    for name, text in read(agent, CLONES[agent]).items():
        ours, theirs = load(agent, name), Template(text)
        assert ours.source != theirs.source
        assert theirs.places == PLACES[agent, name]
        assert frames(theirs) == frames(ours)


def frames(template: Template) -> list[str]:
    """All from the line before the first place on: in every released prompt, that is protocol and no wording."""
    return [template.pieces[0].splitlines()[-1], *template.pieces[1:]]


# Braces.


def test_doubled_braces_are_single_ones_and_places_stay() -> None:
    assert released.converted("a {{}} {x} {{{y}}} }}").source == "a {} {x} {{y}} }"


@given(st.lists(st.sampled_from(["{{", "}}", "{one}", "{two}", "{{}}", "\\", "x", " ", "\n", "é"])))
def test_a_converted_template_shows_what_str_format_shows(parts: list[str]) -> None:
    text = "".join(parts)
    if re.search(r"\{\w+\}", text.format(one="-", two="-")):  # shown, it would look like a place of ours
        with pytest.raises(ValueError, match="taken for a place"):
            released.converted(text)
        return
    values = {"one": "{two}", "two": "{{1}}"}
    template = released.converted(text)
    assert template.fill(**{name: values[name] for name in template.places}) == text.format(**values)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Single"),
        ("}", "Single"),
        ("{0}", "name of a place"),
        ("{}", "name of a place"),
        ("{a.b}", "name of a place"),
        ("{a[0]}", "name of a place"),
        ("{a!r}", "name of a place"),
        ("{a:>3}", "name of a place"),
        ("{a:{b}}", "name of a place"),
        ("{{word}}", "taken for a place"),
    ],
)
def test_what_our_templates_cannot_hold_is_no_template(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        released.converted(text)


# Where prompts are looked for.


@pytest.mark.parametrize(
    "source",
    [
        'TEMPLATE = ("Read " "on, and note.\\n" + REST)',
        'TEMPLATE = f"""{REST}"""',
        'TEMPLATE = open("prompt.txt").read()',
        'TEMPLATE = "x".join(["a"])',
        'TEMPLATE = """{prompt}{memory}{chunk}"""\nTEMPLATE += "more"',
        'TEMPLATE = """{prompt}{memory}{chunk}"""\nif os.name: TEMPLATE = "other"',
        'TEMPLATE = """{prompt}{memory}{chunk}"""\nfrom other import TEMPLATE',
        'TEMPLATE = """{prompt}{memory}{chunk}"""\ndel TEMPLATE',
        'def reading():\n    TEMPLATE = """{prompt}{memory}{chunk}"""',
    ],
)
def test_a_text_that_only_running_would_tell_is_not_taken(source: str) -> None:
    files = {**MEMAGENT, RECURRENT: f"{source}\n" + final("TEMPLATE_FINAL", SAID)}
    message = refusal("memagent", files)
    assert message.startswith(f"{RECURRENT} has no TEMPLATE, the prompt `memory` of memagent")


def test_joined_and_annotated_constants_are_read_and_the_last_one_counts() -> None:
    source = 'TEMPLATE = "{prompt}"\nTEMPLATE: str = ("One " "{prompt}" + r"\\n{memory}") + "{chunk}"\n'
    files = {**MEMAGENT, RECURRENT: source + final("TEMPLATE_FINAL", SAID)}
    assert read("memagent", files)["memory"] == "One {prompt}\\n{memory}{chunk}"


def test_a_renamed_prompt_is_known_by_its_places(agent: str) -> None:
    renames = {"CALL_OR": "PLAN_OR", "RETREIVE": "RETRIEVE", "TEMPLATE =": "READING =", "_tool_schema": "_tool"}
    files = dict(CLONES[agent])
    for old, new in renames.items():
        files = {name: text.replace(old, new) for name, text in files.items()}
    assert read(agent, files) == read(agent, CLONES[agent])
    assert files != CLONES[agent]


def test_two_texts_that_could_be_the_prompt_are_named() -> None:
    twice = final("FIRST", SAID) + final("SECOND", SAID).replace("Now", "Then")
    message = refusal("memagent", {**MEMAGENT, RECURRENT: MEMORY + twice})
    assert message.endswith("and more than one text that could be it: FIRST, SECOND")


def test_two_names_of_one_text_are_one_prompt() -> None:
    twice = final("FIRST", SAID) + final("SECOND", SAID)
    files = {**MEMAGENT, RECURRENT: MEMORY + twice}
    assert read("memagent", files) == read("memagent", MEMAGENT)


def test_two_descriptions_of_the_tool_are_refused_unless_one_has_the_released_name() -> None:
    other = TOOL.replace("get_bm25search", "get_other").replace("How many.", "How few.")
    source = CLONES["infmem"][INFMEM] + other
    assert "How many." in read("infmem", {INFMEM: source})["system"]
    message = refusal("infmem", {INFMEM: source.replace("get_bm25search_tool_schema", "get_third_tool_schema")})
    assert "more than once: get_third_tool_schema (line" in message
    assert "get_other_tool_schema (line" in message


# What is refused.


@pytest.mark.parametrize(
    ("agent", "old", "new", "reason"),
    [
        ("memagent", "{chunk}", "chunk", "has no place {chunk}"),
        ("memagent", "{chunk}", "{chunk} {more}", "has a place {more}, which memagent does not fill"),
        ("memagent", "{chunk}", "{chunk[0]}", "{chunk[0]} is more than the name of a place"),
        ("memagent", "{chunk}", "chunk}", "Single '}' encountered"),
        ("memagent", "note.", "note {{what}}.", "taken for a place"),
        ("memagent", "note.", "note \\ud800.", "half a character"),
        ("memagent", "the answer is", "answer:", "does not say the answer is"),
        ("memagent", BOXED, "in a box", "does not say \\boxed{}"),
        ("infmem", "STOP", "HALT", "does not say STOP"),
        ("infmem", '"maximum": 20', '"maximum": 5', "its parameters are not those that the agent reads"),
        ("infmem", '"name": "retrievesearch"', '"name": "search"', "the description of infmem's tool retrievesearch"),
        ("infmem", "How many.", "How many {memory}.", "taken for a place"),
        ("memreread", "<query> tags", "tags", "does not say <query>"),
        ("rememr1", "`<recall>what?</recall>`", "no more", "does not say <recall>"),
    ],
)
def test_a_prompt_that_the_agent_cannot_use_is_refused(agent: str, old: str, new: str, reason: str) -> None:
    files = {name: text.replace(old, new) for name, text in CLONES[agent].items()}
    assert files != CLONES[agent]
    message = refusal(agent, files)
    assert reason in message
    assert ".py" in message


@pytest.mark.parametrize(
    "source",
    ["def", "x = '", "\0", "x = " + "(" * 300, "x = " + "-" * 200_000 + "1", "x = " + "'a'+" * 60_000 + "'a'"],
)
def test_a_source_that_cannot_be_parsed_is_refused(source: str) -> None:
    message = refusal("memagent", {**MEMAGENT, f"{EVALUATION}/recurrent_boxed.py": source})
    assert "recurrent_boxed.py is not Python" in message
