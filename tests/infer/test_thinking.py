"""Two-stage thinking on text and on token ids, with a byte-level tokenizer and one that puts blanks before words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from treeagent.infer import models
from treeagent.infer.engines import chat, thinking
from treeagent.infer.engines.thinking import CLOSING, Opening, continue_ids, continue_text, joined

pytest.importorskip("transformers")
CLOSED = f"\n\n{CLOSING}\n</think>\n\n"
TEXT = st.lists(
    st.sampled_from(["<think>", "</think>", "the memory", " a", "é", "漢", "\u3000", " ", "\n", "\n\n", ".", "x"]),
    max_size=12,
).map("".join)


@pytest.fixture(scope="module")
def tokenizer(tiny_chat_folder: Path) -> Any:
    return models.load_chat_tokenizer(str(tiny_chat_folder))


@pytest.fixture(scope="module")
def spaced() -> Any:
    """A tokenizer in the manner of SentencePiece: words carry their blank, and a text is given one at its start."""
    from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
    from tokenizers import models as kinds
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(kinds.BPE(byte_fallback=True, unk_token=None))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=200, special_tokens=["<end>"], show_progress=False)
    backend.train_from_iterator([f"the memory of a section\n\n{CLOSED}x.é漢\u3000</think><think>"] * 2, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<end>")


def _ids(tokenizer: Any, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False)


def _opening(tokenizer: Any, text: str, *after: int, think_tokens: int = 999) -> Opening:
    ids = [*_ids(tokenizer, text), *after]
    return continue_ids(tokenizer, ids, think_tokens=think_tokens, ends={tokenizer.eos_token_id})


@pytest.mark.parametrize(
    ("first", "opening", "forced"),
    [
        ("<think>so it is 7</think>", "<think>so it is 7</think>", False),
        (
            "<think>so</think>\n\nIt is \n",
            "<think>so</think>\n\nIt is \n",
            False,
        ),  # already answering: nothing is touched
        ("<think>so it", "<think>so it" + CLOSED, True),
        ("<think>so it \n\n ", "<think>so it" + CLOSED, True),
        ("", CLOSED, True),
        (" \n", CLOSED, True),
        ("</think", "</think" + CLOSED, True),
    ],
)
def test_the_second_request_goes_on_from_a_closed_thinking(
    tokenizer: Any, first: str, opening: str, forced: bool
) -> None:
    assert continue_text(first) == (opening, forced)
    made = _opening(tokenizer, first, tokenizer.eos_token_id)
    assert (tokenizer.decode(made.ids), made.forced_close) == (opening, forced)


def test_a_reply_is_both_parts_without_blanks_around_and_words_may_be_glued() -> None:
    assert joined("<think>a</think>\n\nThe ans", " wer is 7.\n") == "<think>a</think>\n\nThe answer is 7."
    assert joined("<think>a</think>\n\n", "\n\n7 ") == "<think>a</think>\n\n7"
    assert joined("\n<think>a</think>\n\n", "  ") == "<think>a</think>"


def test_the_closing_says_nothing_that_an_agent_reacts_to() -> None:
    """InfMem stops at STOP anywhere; answers are looked for by their cue."""
    assert CLOSING.count(".") == 1
    assert not any(cue in CLOSING for cue in ("STOP", "answer is", "boxed", "✿", "<", "\n"))


def test_what_was_inserted_is_marked_and_nothing_else(tokenizer: Any) -> None:
    opening = _opening(tokenizer, "<think>so it \n", tokenizer.eos_token_id)
    start, end = opening.inserted
    assert opening.ids[:start] == tuple(_ids(tokenizer, "<think>so it"))
    assert tokenizer.decode(opening.ids[start:end]) == CLOSED
    assert end == len(opening.ids)
    closed = _opening(tokenizer, "<think>so</think> \n", tokenizer.eos_token_id)
    assert closed == Opening(
        tuple(_ids(tokenizer, "<think>so</think> \n")), generated=len(_ids(tokenizer, "<think>so</think> \n")) + 1
    )


def test_a_first_stage_is_cut_at_its_limit_and_at_its_first_end(tokenizer: Any) -> None:
    end = tokenizer.eos_token_id
    assert _opening(tokenizer, "abcdef", think_tokens=3).ids[:4] == (*_ids(tokenizer, "abc"), _ids(tokenizer, "\n")[0])
    assert _opening(tokenizer, "abc", end, *_ids(tokenizer, "def")) == _opening(tokenizer, "abc", end, end)
    assert _opening(tokenizer, "abc", end, end).generated == 4
    assert _opening(tokenizer, "abcdef", think_tokens=3).generated == 3


def test_a_last_token_that_is_partly_blank_is_replaced_by_its_stripped_text(tokenizer: Any) -> None:
    import copy

    merged = copy.deepcopy(tokenizer)
    merged.add_tokens(["so\n\n"])
    ids = _ids(merged, "<think>so\n\n")
    assert merged.decode(ids[-1:]) == "so\n\n"
    opening = continue_ids(merged, ids, [-1.0] * len(ids), think_tokens=99, ends=())
    kept = len(ids) - 1
    assert opening.ids[:kept] == tuple(ids[:kept])
    assert merged.decode(opening.ids) == "<think>so" + CLOSED
    assert opening.inserted == (kept, len(opening.ids))
    assert opening.logprobs == (-1.0,) * kept + (0.0,) * (len(opening.ids) - kept)


def test_the_marks_of_thinking_survive_where_a_tokenizer_calls_them_special(tokenizer: Any) -> None:
    import copy

    special = copy.deepcopy(tokenizer)
    special.add_special_tokens({"additional_special_tokens": ["<think>", "</think>", "<tool>"]})
    text = "<think>so</think>7"
    ids = [*_ids(special, text), special.eos_token_id]
    assert special.decode(ids, skip_special_tokens=True) == "so7"
    assert thinking.decode(special, ids) == text
    assert thinking.decode(special, _ids(special, "<|im_start|>a<tool>b")) == "ab"
    assert not _opening(special, text).forced_close


def test_a_character_that_the_first_stage_only_began_is_whole_in_the_reply(tokenizer: Any) -> None:
    ids = _ids(tokenizer, "</think>7漢 ")
    opening = continue_ids(tokenizer, ids[:-2], think_tokens=99, ends=())
    assert tokenizer.decode(opening.ids) == "</think>7\ufffd"
    reply = chat.two_stage_reply(tokenizer, [5], opening, ids[-2:], None, max_tokens=9, ends=())
    assert reply.text == "</think>7漢"


def test_a_reply_holds_both_requests_ids_logprobs_and_usage(tokenizer: Any) -> None:
    end, prompt = tokenizer.eos_token_id, [7, 8, 9]
    first, second = _ids(tokenizer, "hm "), _ids(tokenizer, "\n7")
    opening = continue_ids(tokenizer, [*first, end], [-1.0] * 4, think_tokens=20, ends={end})
    said = [*second, end, end]
    reply = chat.two_stage_reply(tokenizer, prompt, opening, said, [-2.0] * 4, max_tokens=5, ends={end})
    closing = _ids(tokenizer, CLOSED)
    assert reply.text == "hm" + CLOSED + "7"
    assert (reply.finish, reply.forced_close, reply.n_requests) == ("stop", True, 2)
    assert reply.prompt_ids == (7, 8, 9)
    assert reply.completion_ids == (*first[:2], *closing, *second, end)
    assert reply.inserted == (2, 2 + len(closing))
    assert reply.logprobs == (-1.0, -1.0, *[0.0] * len(closing), -2.0, -2.0, -2.0)
    assert reply.prompt_tokens == 3 + 3 + 2 + len(closing)
    assert reply.completion_tokens == 4 + 3


def test_an_empty_second_stage_leaves_the_first(tokenizer: Any) -> None:
    end = tokenizer.eos_token_id
    reply = chat.two_stage_reply(
        tokenizer, [7], _opening(tokenizer, "</think>\n7 "), [end], None, max_tokens=5, ends={end}
    )
    assert (reply.text, reply.finish) == ("</think>\n7", "stop")
    cut = chat.two_stage_reply(
        tokenizer, [7], _opening(tokenizer, "</think>"), _ids(tokenizer, "abc"), None, max_tokens=2, ends={end}
    )
    assert (cut.text, cut.finish, cut.inserted, cut.forced_close) == ("</think>ab", "length", (0, 0), False)


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=TEXT, second=TEXT, cut=st.integers(0, 40))
def test_ids_say_what_the_text_says(tokenizer: Any, first: str, second: str, cut: int) -> None:
    """Whatever the first request said and wherever it was cut."""
    ids = _ids(tokenizer, first)[:cut]
    said = tokenizer.decode(ids)
    opening = continue_ids(tokenizer, ids, think_tokens=999, ends=())
    expected, forced = continue_text(said)
    assert (tokenizer.decode(opening.ids), opening.forced_close) == (expected, forced)
    start, end = opening.inserted
    assert opening.ids[:start] == tuple(ids)[:start]
    assert forced == (end > start)
    reply = chat.two_stage_reply(tokenizer, [1], opening, _ids(tokenizer, second), None, max_tokens=999, ends=())
    assert reply.text == joined(expected, second)
    assert reply.completion_ids == (*opening.ids, *_ids(tokenizer, second))


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=TEXT.filter(lambda text: text[:1] not in (" ", "\u3000")))
def test_nothing_is_put_before_what_is_inserted(spaced: Any, first: str) -> None:
    ids = _ids(spaced, first)
    opening = continue_ids(spaced, ids, think_tokens=999, ends=())
    assert spaced.decode(opening.ids) == continue_text(spaced.decode(ids))[0]
