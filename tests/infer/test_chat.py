"""Requests as ids and ids as replies: limits, usage, what failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treeagent.data.rollout import Request
from treeagent.errors import ModelError
from treeagent.infer import models
from treeagent.infer.engines import chat, thinking
from treeagent.infer.engines.thinking import Opening

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def tokenizer(tiny_chat_folder: Path) -> Any:
    return models.load_chat_tokenizer(str(tiny_chat_folder))


def _request(max_tokens: int, think_tokens: int = 0, limit: int | None = None) -> Request:
    return Request("memory", ({"role": "user", "content": "x"},), max_tokens, think_tokens=think_tokens, limit=limit)


def test_a_request_keeps_to_its_own_limit_and_to_the_engines_whichever_is_smaller() -> None:
    assert chat.overflow(_request(5, limit=15), [1] * 10, 20) is None
    assert chat.overflow(_request(5, limit=20), [1] * 10, 15) is None
    assert chat.overflow(_request(5), 1_000_000, None) is None
    for request, engine in ((_request(6, limit=15), 20), (_request(6, limit=20), 15), (_request(6), 15)):
        refused = chat.overflow(request, 10, engine)
        assert refused is not None
        assert (refused.finish, refused.n_requests, refused.text) == ("overflow", 0, "")
        assert refused.error == "10 prompt + 6 new tokens, over the limit of 15"


@given(prompt=st.integers(0, 50), think=st.integers(0, 50), most=st.integers(1, 50), limit=st.integers(1, 150))
def test_prompt_thinking_and_reply_together_keep_the_requests_limit(
    prompt: int, think: int, most: int, limit: int
) -> None:
    refused = chat.overflow(_request(most, think, limit), [0] * prompt, None)
    assert (refused is not None) == (prompt + think + most > limit)


def test_an_engines_limit_has_room_for_the_closing_of_the_thinking_too(tokenizer: Any) -> None:
    """What is inserted between thinking and reply is beyond both, but has positions of its own."""
    asked = 10 + 20 + 30
    most = asked + len(tokenizer.encode(thinking.INSERTED, add_special_tokens=False))
    assert chat.overflow(_request(30, 20), 10, most - 1) is not None
    assert chat.overflow(_request(30, 20), 10, asked + len(thinking.INSERTED)) is None
    assert chat.overflow(_request(50), 10, asked) is None


def test_a_reply_counts_its_tokens(tokenizer: Any) -> None:
    end = tokenizer.eos_token_id
    said = [*tokenizer.encode("abc"), end, 5, 6]
    reply = chat.reply(tokenizer, [1, 2, 3, 4, 5], said, None, max_tokens=9, ends={end})
    assert (reply.prompt_tokens, reply.completion_tokens, reply.n_requests) == (5, 4, 1)
    assert (reply.text, reply.finish) == ("abc", "stop")
    cut = chat.reply(tokenizer, [1], said, None, max_tokens=2, ends={end})
    assert (cut.text, cut.finish, cut.prompt_tokens, cut.completion_tokens) == ("ab", "length", 1, 2)


def test_a_failed_reply_counts_the_requests_that_were_made() -> None:
    first = chat.failed([1, 2], None, "no")
    assert (first.finish, first.error, first.text, first.n_requests) == ("error", "no", "", 1)
    assert (first.prompt_tokens, first.completion_tokens) == (0, 0)
    second = chat.failed([1, 2], Opening((3, 4), (0, 2), forced_close=True, generated=7), "no")
    assert (second.finish, second.n_requests, second.forced_close) == ("error", 2, True)
    assert (second.prompt_tokens, second.completion_tokens) == (2, 7)


def test_a_tokenizer_without_a_chat_template_is_refused_in_one_line(tokenizer: Any) -> None:
    import copy

    bare = copy.deepcopy(tokenizer)
    bare.chat_template = None
    with pytest.raises(ModelError, match="no chat template"):
        chat.check(bare)
    chat.check(tokenizer)
