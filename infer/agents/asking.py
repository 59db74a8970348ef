"""What all four agents have in common: their wording, and how a filled template becomes a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar

from annotated_types import Ge

from ...data.rollout import Kind, Message, Request
from ...data.tokens import Tokenizer, load_tokenizer
from ...errors import ConfigError
from .templates import NAMES_OF_PROMPTS, Template, fingerprint, load

Tokens = Annotated[int, Ge(1)]


@dataclass(frozen=True)
class Asker:
    """Options of every agent. `max_tokens` caps a reply, `request_limit` prompt, thinking and reply together, in tokens
    (paper, Table 2); `prompts` is a folder of imported wording, None for ours."""

    name: ClassVar[str]

    max_tokens: Tokens = 1024
    request_limit: Tokens = 32768
    prompts: str | None = None

    @cached_property
    def templates(self) -> Mapping[str, Template]:
        """The templates that this agent sends, read once. Raises ConfigError if a folder of wording lacks one."""
        return {name: load(self.name, name, self.prompts) for name in self.names_of_prompts}

    @property
    def names_of_prompts(self) -> tuple[str, ...]:
        """The templates that this agent sends with its options."""
        return NAMES_OF_PROMPTS[self.name]

    @property
    def prompts_hash(self) -> str:
        """Identifies the wording of all the prompts that this agent sends."""
        return fingerprint(list(self.templates.values()))

    @property
    def thinking(self) -> tuple[int, bool | None]:
        """Tokens to think with before each reply, and the flag of the chat template (None: not passed)."""
        return 0, None

    def derive(self, texts: Sequence[str]) -> Mapping[Any, Any]:
        """Nothing: most agents know sections only as they read them."""
        return {}

    def ask(
        self,
        kind: Kind,
        template: str,
        values: Mapping[str, str],
        *,
        system: str | None = None,
        max_tokens: int | None = None,
        section: int | None = None,
        pass_id: int = 0,
    ) -> Request:
        """A request with one user turn, the filled template, after a system turn where the protocol has one (else the
        chat template adds its own, if any)."""
        turns: list[Message] = [] if system is None else [{"role": "system", "content": system}]
        turns.append({"role": "user", "content": self.templates[template].fill(**values)})
        think_tokens, enable_thinking = self.thinking
        return Request(
            kind,
            tuple(turns),
            max_tokens or self.max_tokens,
            think_tokens=think_tokens,
            enable_thinking=enable_thinking,
            section=section,
            pass_id=pass_id,
            limit=self.request_limit,
        )


@dataclass(frozen=True)
class TokenAsker(Asker):
    """An agent that counts or compares tokens. `tokenizer` is the model's, anything that `load_tokenizer` takes; None
    will do where nothing is rolled out."""

    tokenizer: Any = field(default=None, repr=False, compare=False)

    @cached_property
    def loaded_tokenizer(self) -> Tokenizer:
        """The tokenizer, loaded once. Raises ConfigError if the agent was built without one."""
        if self.tokenizer is None:
            raise ConfigError(f"agent {self.name}: reading needs the model's tokenizer; give build(..., tokenizer=...)")
        return load_tokenizer(self.tokenizer)
