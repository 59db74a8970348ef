"""The released wording of an agent's prompts, found in the source of its public repository.

The source is data: it is parsed, never imported or run, and of its expressions only constant strings (literals side by
side or joined by `+`) and constant dictionaries are read. A prompt is looked for under the name that the repository
gives it; under another name it is known by its places, if only one text in that file has them. The repositories fill
their prompts with `str.format`, so doubled braces become single ones here, as they do there.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, TypeAlias

from ...errors import InputError
from .infmem_protocol import TOOL
from .templates import PLACES, Template, load

_EVALUATION = "taskutils/memory_eval/utils"
_SAID, _BOXED = "the answer is", "\\boxed{}"
"""What a prompt must ask for, so that the answer is found in the reply."""


@dataclass(frozen=True)
class Origin:
    """Where a repository defines a prompt, and what the prompt must say lest the agent misread every reply."""

    file: str
    name: str
    marks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Released:
    """A prompt in our form, with the place in the repository where it was found. `whole` is false where only a part of
    it is released and the rest is ours."""

    prompt: str
    text: str
    file: str
    name: str
    line: int
    whole: bool = True


REPOSITORIES: Mapping[str, str] = {
    "memagent": "BytedTsinghua-SIA/MemAgent",
    "infmem": "UCMP13753/InfMem",
    "memreread": "iiGray/MemReread",
    "rememr1": "syr-cn/ReMemR1",
}
"""The public repository of each agent on GitHub. All began as copies of MemAgent's."""

ORIGINS: Mapping[str, Mapping[str, Origin]] = {
    "memagent": {
        "memory": Origin(f"{_EVALUATION}/recurrent.py", "TEMPLATE"),
        "answer": Origin(f"{_EVALUATION}/recurrent.py", "TEMPLATE_FINAL", (_SAID,)),
        "answer_boxed": Origin(f"{_EVALUATION}/recurrent_boxed.py", "TEMPLATE_FINAL", (_BOXED,)),
    },
    "infmem": {
        "system": Origin(f"{_EVALUATION}/infmem.py", "get_bm25search_tool_schema"),
        "plan": Origin(f"{_EVALUATION}/infmem.py", "TEMPLATE_CALL_OR_ANSWER", (TOOL, "STOP")),
        "write": Origin(f"{_EVALUATION}/infmem.py", "TEMPLATE_RETREIVE_RECURRENT"),
        "answer": Origin(f"{_EVALUATION}/infmem.py", "TEMPLATE_FINAL", (_SAID,)),
    },
    "memreread": {
        "memory": Origin("recursive/prompts.py", "MEMAGENT_READING_TEMPLATE"),
        "decompose": Origin("recursive/prompts.py", "DECOMPOSING_OR_ANSWERING_TEMPLATE", ("<query>",)),
        "answer": Origin("recursive/prompts.py", "ANSWERING_TEMPLATE", (_BOXED,)),
        "integrate": Origin("recursive/prompts.py", "INTEGRATING_TEMPLATE"),
    },
    "rememr1": {
        "memory": Origin(f"{_EVALUATION}/rememr1.py", "TEMPLATE", ("<update>", "<recall>")),
        "answer": Origin(f"{_EVALUATION}/rememr1.py", "TEMPLATE_FINAL_BOXED", (_BOXED,)),
    },
}
"""The prompts of each agent's released evaluation."""


def files(agent: str) -> tuple[str, ...]:
    """The files of the repository, relative to its root, that define the agent's prompts."""
    return tuple(dict.fromkeys(origin.file for origin in ORIGINS[agent].values()))


def read(agent: str, sources: Mapping[str, str]) -> tuple[Released, ...]:
    """Every prompt of an agent, from the source text of its `files`.

    Raises InputError if a source is no Python, or if a prompt is not there, is there more than once, or is not one
    that the agent can use.
    """
    modules = {file: _parsed(file, source) for file, source in sources.items()}
    return tuple(
        (_system if prompt == "system" else _template)(agent, prompt, origin, modules[origin.file])
        for prompt, origin in ORIGINS[agent].items()
    )


def converted(text: str) -> Template:
    """A `str.format` text as a template of ours: plain `{name}` places, every other brace as it will be shown.

    Raises ValueError if `str.format` would not take the text, or if our templates cannot hold it.
    """
    pieces = [""]
    for literal, field, form, conversion in Formatter().parse(text):
        pieces[-1] += literal
        if field is not None:
            if form or conversion or not field.isidentifier():
                raise ValueError(f"{{{field[:40]}}} is more than the name of a place")
            pieces += [field, ""]
    pieces[1::2] = [f"{{{field}}}" for field in pieces[1::2]]
    return _exact("".join(pieces), len(pieces))


def _exact(text: str, pieces: int) -> Template:
    """The template, if it has as many pieces as it should and can be written to a file."""
    template = Template(text)
    if len(template.pieces) != pieces:
        raise ValueError("it shows a word in single braces, which would be taken for a place")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("it holds half a character, which no file can") from None
    return template


# What a module says, without running it.

_Module: TypeAlias = ast.Module


@dataclass(frozen=True)
class _Constant:
    """A string that a module defines at its top."""

    name: str
    text: str
    line: int


def _parsed(file: str, source: str) -> _Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except SyntaxError as error:
        raise InputError(f"{file} is not Python: line {error.lineno or 1}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{file} is not Python that can be read: {error or type(error).__name__}") from error


def _constants(module: _Module) -> dict[str, _Constant]:
    """The strings that the module's names stand for when it has run, as far as that is certain."""
    found: dict[str, _Constant] = {}
    for statement in module.body:
        for name in _bound(statement):
            found.pop(name, None)
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            text = _string(statement.value)
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if isinstance(target, ast.Name) and text is not None:
                    found[target.id] = _Constant(target.id, text, statement.lineno)
    return found


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Names that may mean something else after the statement."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]


def _string(expression: ast.expr) -> str | None:
    """The value of a constant string expression."""
    parts: list[str] = []
    todo = [expression]
    while todo:
        match todo.pop():
            case ast.Constant(value=str() as text):
                parts.append(text)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                todo += [right, left]
            case _:
                return None
    return "".join(parts)


# Prompts.


def _template(agent: str, prompt: str, origin: Origin, module: _Module) -> Released:
    constants = _constants(module)
    found = constants.get(origin.name) or _by_places(agent, prompt, origin, constants)
    where = f"{origin.file}: {found.name} (line {found.line})"
    try:
        template = converted(found.text)
    except ValueError as error:
        raise InputError(f"{where} cannot be the prompt `{prompt}` of {agent}: {error}") from error
    places, needed = template.places, PLACES[agent, prompt]
    wrong = [f"has no place {{{name}}}" for name in sorted(needed - places)]
    wrong += [f"has a place {{{name}}}, which {agent} does not fill" for name in sorted(places - needed)]
    wrong += [f"does not say {mark}" for mark in origin.marks if mark not in template.source]
    if wrong:
        raise InputError(f"{where} cannot be the prompt `{prompt}` of {agent}: it {wrong[0]}")
    return Released(prompt, template.source, origin.file, found.name, found.line)


def _by_places(agent: str, prompt: str, origin: Origin, constants: Mapping[str, _Constant]) -> _Constant:
    """The only text with the places and the marks of the prompt."""
    fitting = {
        constant.text: constant
        for constant in constants.values()
        if _fits(constant.text, PLACES[agent, prompt], origin.marks)
    }
    if len(fitting) == 1:
        return next(iter(fitting.values()))
    missing = f"{origin.file} has no {origin.name}, the prompt `{prompt}` of {agent}"
    if not fitting:
        raise InputError(f"{missing}, and no other text with its places")
    names = ", ".join(sorted(constant.name for constant in fitting.values()))
    raise InputError(f"{missing}, and more than one text that could be it: {names}")


def _fits(text: str, places: frozenset[str], marks: tuple[str, ...]) -> bool:
    try:
        template = converted(text)
    except ValueError:
        return False
    return template.places == places and all(mark in template.source for mark in marks)


# InfMem's tool. How tools are announced is the wording of another project, not of this repository; so the frame stays
# ours, and what the repository says of its tool goes in.


def _system(agent: str, prompt: str, origin: Origin, module: _Module) -> Released:
    tools = {json.dumps(tool): (name, line, tool) for name, line, tool in _tools(module)}
    tools = {key: found for key, found in tools.items() if found[0] == origin.name} or tools
    if not tools:
        raise InputError(f"{origin.file} has no {origin.name}, the description of {agent}'s tool {TOOL}")
    if len(tools) > 1:
        names = ", ".join(f"{name} (line {line})" for name, line, _ in tools.values())
        raise InputError(f"{origin.file} describes {agent}'s tool {TOOL} more than once: {names}")
    name, line, tool = next(iter(tools.values()))
    try:
        text = _framed(load(agent, prompt).source, tool)
    except ValueError as error:
        raise InputError(f"{origin.file}: {name} (line {line}) cannot be {agent}'s tool {TOOL}: {error}") from error
    return Released(prompt, text, origin.file, name, line, whole=False)


def _tools(module: _Module) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Constant dictionaries that describe the tool, each with the top-level name that it belongs to and its line."""
    for statement in module.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Dict):
                try:
                    value = ast.literal_eval(node)
                    json.dumps(value)
                except (ValueError, TypeError, RecursionError):
                    continue
                if value.get("name") == TOOL and isinstance(value.get("parameters"), dict):
                    yield next(_bound(statement), ""), node.lineno, value


def _framed(frame: str, tool: Mapping[str, Any]) -> str:
    """Our tool message with the tool's own descriptions. Raises ValueError for a tool with other parameters."""
    head, start, rest = frame.partition(f"\n{TOOL}: ")
    _, middle, rest = rest.partition(" Parameters: ")
    ours, end = json.JSONDecoder().raw_decode(rest)
    if _bare(ours) != _bare(tool["parameters"]) or not isinstance(tool.get("description"), str):
        raise ValueError("its parameters are not those that the agent reads")
    schema = json.dumps(tool["parameters"], ensure_ascii=False)
    return _exact(f"{head}{start}{tool['description']}{middle}{schema}{rest[end:]}", 1).source


def _bare(schema: Any) -> Any:
    """A schema without its descriptions."""
    if not isinstance(schema, dict):
        return schema
    return {key: _bare(value) for key, value in schema.items() if key != "description" or isinstance(value, dict)}
