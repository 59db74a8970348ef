"""The `openai` engine against a server that does what a script says."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import Any

import pytest
from fault_server import FaultServer, Script, Seen, Step, fails, lists, said, says
from treeagent.data.rollout import Message, Reply, Request
from treeagent.errors import ConfigError, ModelError
from treeagent.infer.engines import Sampling
from treeagent.infer.engines.openai_server import OpenAI
from treeagent.infer.engines.options import OpenAIOptions
from treeagent.infer.engines.thinking import CLOSING

KEY = "sk-0123456789abcdef"
GREEDY = Sampling()
INSERTED = f"\n\n{CLOSING}\n</think>\n\n"


class Letters:
    """A tokenizer for which each character is a token, and its template: roles in brackets. Id 0 ends a reply."""

    bos_token, bos_token_id, all_special_ids = None, None, [0]
    added_tokens_decoder: Mapping[int, Any] = {}

    def __init__(self) -> None:
        self.counted = 0

    def apply_chat_template(
        self, messages: Sequence[Message], *, tokenize: bool, add_generation_prompt: bool, **flags: Any
    ) -> Any:
        text = "".join(f"[{message['role']}]{message['content']}" for message in messages) + "[assistant]"
        text += "[no thinking]" if flags.get("enable_thinking") is False else ""
        self.counted += tokenize
        return self.encode(text) if tokenize else text

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return [ord(c) for c in text]

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        return "".join(chr(i) for i in ids if i)


def request(
    content: str = "What is it?",
    max_tokens: int = 8,
    *,
    think: int = 0,
    thinking: bool | None = None,
    limit: int | None = None,
) -> Request:
    return Request(
        "memory", ({"role": "user", "content": content},), max_tokens, think, enable_thinking=thinking, limit=limit
    )


class Waits:
    """Takes the place of sleeping: keeps what it was asked for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)


@pytest.fixture
def serve() -> Iterator[Callable[..., FaultServer]]:
    """Starts scripted servers, and ends them all."""
    servers: list[FaultServer] = []

    def start(script: Script = (), models: Step | None = None) -> FaultServer:
        servers.append(FaultServer(script, models))
        return servers[-1].__enter__()

    yield start
    for server in servers:
        server.__exit__()


@pytest.fixture
def connect() -> Iterator[Callable[..., OpenAI]]:
    """Makes engines that do not sleep, and closes them all."""
    engines: list[OpenAI] = []

    def make(
        *servers: FaultServer,
        model: str | None = "m",
        renderer: Any = None,
        count: Callable[[str], int] | None = None,
        sleep: Any = None,
        most_bytes: int = 1 << 20,
        **options: Any,
    ) -> OpenAI:
        urls = tuple(server.url for server in servers)
        engines.append(
            OpenAI(
                OpenAIOptions(**{"base_url": urls, "timeout": 20.0, **options}),
                model=model,
                renderer=renderer,
                count=count,
                sleep=sleep or Waits(),
                most_bytes=most_bytes,
            )
        )
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


Serve = Callable[..., FaultServer]
Connect = Callable[..., OpenAI]


def ask(engine: OpenAI, asked: Request | None = None, sampling: Sampling = GREEDY) -> Reply:
    return engine.generate([asked or request()], sampling)[0]


# What is sent and what comes back.


def test_a_reply_carries_text_finish_and_usage(serve: Serve, connect: Connect) -> None:
    reply = ask(connect(serve([said("The memory.\x1b[31m", "length")])))
    assert reply == Reply("The memory.\x1b[31m", "length", n_requests=1, prompt_tokens=7, completion_tokens=3)


def test_greedy_decoding_sends_what_greedy_decoding_needs(serve: Serve, connect: Connect) -> None:
    server = serve()
    ask(connect(server))
    sent = {"model": "m", "max_tokens": 8, "temperature": 0.0, "seed": 42}
    assert server.seen[0].path == "/v1/chat/completions"
    assert server.seen[0].body == sent | {"messages": [{"role": "user", "content": "What is it?"}]}
    assert "authorization" not in server.seen[0].headers


def test_sampling_extra_fields_and_thinking_reach_the_server(serve: Serve, connect: Connect) -> None:
    server = serve()
    extra = {"repetition_penalty": 1.0, "chat_template_kwargs": {"style": "plain"}}
    engine = connect(server, max_tokens_field="max_completion_tokens", extra=extra, omit=("seed",), token_ids=True)
    ask(engine, request(thinking=True), Sampling(temperature=0.7, top_p=0.9, top_k=20))
    assert server.seen[0].body == {
        "model": "m",
        "max_completion_tokens": 8,
        "temperature": 0.7,
        "top_p": 0.9,
        "top_k": 20,
        "repetition_penalty": 1.0,
        "return_token_ids": True,
        "chat_template_kwargs": {"style": "plain", "enable_thinking": True},
        "messages": [{"role": "user", "content": "What is it?"}],
    }


def test_the_key_is_sent_and_shown_nowhere(serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    echo = f"you sent Bearer {KEY}"
    server = serve([fails(400, echo), said(echo), says({"error": {"message": echo}}), fails(401, echo)])
    engine = connect(server, key_env="SOME_KEY", retries=0)
    replies = [ask(engine) for _ in range(3)]
    assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"
    with pytest.raises(ModelError, match=r"the key in \$SOME_KEY was sent") as refused:
        ask(engine)
    assert [reply.finish for reply in replies] == ["error", "stop", "error"]
    assert all("you sent Bearer ***" in f"{reply.text}{reply.error}" for reply in replies)
    assert KEY not in repr((replies, refused.value, engine.__dict__))


def test_a_missing_key_and_a_missing_template_are_found_before_anything_starts(
    serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    threads = threading.active_count()
    with pytest.raises(ConfigError, match="SOME_KEY is not set"):
        OpenAI(OpenAIOptions(key_env="SOME_KEY"))
    monkeypatch.setenv("SOME_KEY", "two words")
    with pytest.raises(ConfigError, match="no key"):
        OpenAI(OpenAIOptions(key_env="SOME_KEY"))
    with pytest.raises(ConfigError, match="chat template"):
        OpenAI(OpenAIOptions(api="completions"))
    assert threading.active_count() == threads


def test_proxies_of_the_environment_are_used(serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = serve()
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
    assert ask(connect(base_url=("http://model.invalid/v1",))).text == "fine"
    assert proxy.seen[0].path == "http://model.invalid/v1/chat/completions"


# Faults.

GOOD = said().body
BROKEN = {
    "truncated JSON": Step(GOOD[:-9]),
    "a connection closed before the end": Step(GOOD[:-9], promised=len(GOOD)),
    "a connection reset": Step(GOOD[:9], promised=len(GOOD), then="reset"),
    "no JSON": Step(b"<html>busy</html>"),
    "no UTF-8": Step(b'{"choices": "\xff"}'),
    "JSON too deep to read": Step(b"[" * 100_000),
    "empty choices": says({"choices": []}),
    "no choices": says({"object": "reply"}),
    "an error that calls itself a success": says({"error": {"message": "busy"}}),
    "a missing message": says({"choices": [{"finish_reason": "stop"}]}),
    "text of a wrong type": said(message={"content": 7}),
    "a choice of a wrong type": says({"choices": ["fine"]}),
    "nothing at all": Step(b"null"),
    "neither text nor an end": said(None, None),
    "an aborted reply": said("half", "abort"),
}


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_a_server_in_trouble_is_asked_again(serve: Serve, connect: Connect, status: int) -> None:
    reply = ask(connect(serve([fails(status), fails(status)])))
    assert (reply.text, reply.finish, reply.n_requests, reply.prompt_tokens) == ("fine", "stop", 3, 7)


@pytest.mark.parametrize("fault", BROKEN)
def test_a_response_that_says_nothing_usable_is_asked_for_again(serve: Serve, connect: Connect, fault: str) -> None:
    reply = ask(connect(serve([BROKEN[fault]])))
    assert (reply.text, reply.n_requests) == ("fine", 2)


def test_when_all_attempts_fail_the_reply_is_an_error_of_one_printable_line(serve: Serve, connect: Connect) -> None:
    hostile = "busy\n\x1b[2J\u202e " + "x" * 10_000
    reply = ask(connect(serve(lambda _: fails(503, hostile)), retries=3))
    assert (reply.text, reply.finish, reply.n_requests) == ("", "error", 4)
    assert "503 busy [2J xxx" in reply.error
    assert reply.error.isprintable()
    assert len(reply.error) < 250


@pytest.mark.parametrize("status", [400, 402, 413, 422, 418])
def test_what_the_request_did_wrong_is_not_tried_again(serve: Serve, connect: Connect, status: int) -> None:
    reply = ask(connect(serve([fails(status, "messages: too odd")])))
    assert (reply.finish, reply.n_requests) == ("error", 1)
    assert reply.error.endswith(f"{status} messages: too odd")


def test_a_field_that_the_server_refuses_is_named_with_its_remedy(serve: Serve, connect: Connect) -> None:
    reply = ask(connect(serve([fails(400, "Unrecognized request argument: seed")])))
    assert reply.error.endswith("argument: seed (openai.omit [seed] leaves it out)")


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": "This model's maximum context length is 4096 tokens.", "code": "context_length_exceeded"}),
        (400, {"code": 400, "message": "request (3001 tokens) is too large", "type": "exceed_context_size_error"}),
        (500, {"message": "the request exceeds the available context size. try increasing the context size"}),
        (400, {"message": "The decoder prompt (length 9) is longer than the maximum model length of 8."}),
        (200, {"message": "the request exceeds the available context size"}),
    ],
)
def test_a_context_that_the_server_finds_too_long_is_an_overflow(
    serve: Serve, connect: Connect, status: int, error: dict[str, Any]
) -> None:
    reply = ask(connect(serve([says({"error": error}, status)])))
    assert (reply.finish, reply.n_requests, reply.text) == ("overflow", 1, "")
    assert error["message"][:30] in reply.error


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (said("half", "content_filter"), "content_filter"),
        (said(None, message={"refusal": "I would rather not."}), "I would rather not."),
        (said(None, "tool_calls", message={"tool_calls": [{}]}), "tool call"),
    ],
)
def test_a_reply_that_is_withheld_is_an_error(serve: Serve, connect: Connect, step: Step, why: str) -> None:
    reply = ask(connect(serve([step])))
    assert (reply.finish, reply.n_requests) == ("error", 1)
    assert why in reply.error


def test_a_redirect_is_not_followed(serve: Serve, connect: Connect) -> None:
    other = serve()
    reply = ask(connect(serve([says({}, 307, location=other.url + "/chat/completions")])))
    assert reply.finish == "error"
    assert f"307 redirects to {other.url}" in reply.error
    assert other.seen == []
    with pytest.raises(ModelError, match="308 redirects to https://elsewhere/"):
        ask(connect(serve(models=says({}, 308, location="https://elsewhere/"))))


def test_a_response_of_any_size_is_read_only_so_far(serve: Serve, connect: Connect) -> None:
    server = serve([Step(b" " * 5000, promised=1 << 40)])
    reply = ask(connect(server, most_bytes=4000))
    assert (reply.finish, reply.n_requests) == ("error", 1)
    assert "longer than 4000 bytes" in reply.error


@pytest.mark.parametrize("then", ["trickle", "hang"])
def test_the_time_for_a_request_is_that_for_its_whole_response(serve: Serve, connect: Connect, then: Any) -> None:
    server = serve(lambda _: Step(b" ", promised=1 << 40, then=then))
    reply = ask(connect(server, timeout=0.15, retries=0))
    assert (reply.finish, reply.n_requests) == ("error", 1)
    assert "no answer within 0.15 s" in reply.error


def test_a_server_is_given_the_time_it_asks_for(serve: Serve, connect: Connect) -> None:
    now = "Tue, 01 Jan 2030 10:00:00 GMT"
    asked = [
        fails(429, retry_after="7"),
        fails(503, date=now, retry_after="Tue, 01 Jan 2030 10:00:09 GMT"),
        fails(529, date=now, retry_after="Tue, 01 Jan 2030 09:00:00 GMT"),
        fails(429, retry_after="a while"),
        fails(429, retry_after="1e300"),
    ]
    waits = Waits()
    assert ask(connect(serve(asked), sleep=waits, backoff=0.5)).text == "fine"
    for wait, least, spread in zip(waits.seconds, [7, 9, 0, 0, 120], [0.5, 1, 2, 4, 8], strict=True):
        assert least <= wait <= least + spread


def test_waits_grow_to_half_a_minute_and_differ(serve: Serve, connect: Connect) -> None:
    waits = Waits()
    ask(connect(serve(lambda _: fails(500)), sleep=waits, retries=40, backoff=1.0))
    assert len(waits.seconds) == 40
    assert all(wait <= min(30, 2**n) for n, wait in enumerate(waits.seconds))
    assert max(waits.seconds) > 15
    assert len(set(waits.seconds)) == 40


# Which model.


def test_a_model_that_is_not_served_is_refused_with_those_that_are(serve: Serve, connect: Connect) -> None:
    with pytest.raises(ModelError, match="'m' is not served there; served: other, more"):
        ask(connect(serve(models=lists("other", "more"))))
    with pytest.raises(ModelError, match="name the model; served: other, more"):
        ask(connect(serve(models=lists("other", "more")), model=None))


def test_the_only_model_served_needs_no_name(serve: Serve, connect: Connect) -> None:
    server = serve(models=lists("/models/only.gguf", aliases=["only"]))
    assert ask(connect(server, model=None)).finish == "stop"
    assert ask(connect(server, model="only")).finish == "stop"
    assert [seen.body["model"] for seen in server.seen] == ["/models/only.gguf", "only"]


@pytest.mark.parametrize("models", [fails(404), Step(b"<html>"), says([]), says({"data": 7})])
def test_a_server_without_a_list_of_models_is_asked_for_the_named_one(
    serve: Serve, connect: Connect, models: Step
) -> None:
    assert ask(connect(serve(models=models), retries=1)).text == "fine"
    with pytest.raises(ModelError, match=r"lists no models: name the model; .* mostly ends with /v1"):
        ask(connect(serve(models=models), model=None, retries=1))


def test_a_model_unknown_to_the_server_concerns_all_requests(serve: Serve, connect: Connect) -> None:
    with pytest.raises(ModelError, match="404 no such model; asked for the model 'm', served: m"):
        ask(connect(serve([fails(404, "no such model")])))
    with pytest.raises(ModelError, match=r"404 Not Found; openai\.base_url mostly ends with /v1"):
        ask(connect(serve([Step(b"Not Found", 404)], models=fails(404))))


def test_an_address_where_nothing_answers_is_an_error_at_once(serve: Serve, connect: Connect) -> None:
    server = serve()
    server.__exit__()
    with pytest.raises(ModelError, match=f"no model to be had from {server.url}: ConnectError"):
        ask(connect(server))


def test_a_name_that_no_address_can_have_is_an_error(connect: Connect) -> None:
    with pytest.raises(ModelError, match="InvalidURL"):
        ask(connect(base_url=("http://\u2603.example/v1",)))


def test_a_server_cannot_make_requests_grow(serve: Serve, connect: Connect) -> None:
    server = serve([says(json.loads(said().body), set_cookie=f"c{n}={n}; Path=/") for n in range(3)])
    engine = connect(server, concurrency=1)
    for _ in range(3):
        assert ask(engine).text == "fine"
    assert all("cookie" not in seen.headers for seen in server.seen)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_request_without_a_key_asks_for_one(serve: Serve, connect: Connect, status: int) -> None:
    with pytest.raises(ModelError, match=r"no key was sent; name one in openai\.key_env"):
        ask(connect(serve(models=fails(status))))
    with pytest.raises(ModelError, match=f"{status} go away"):
        ask(connect(serve([fails(status, "go away")])))


def test_the_list_of_models_is_asked_for_once(serve: Serve, connect: Connect) -> None:
    server = serve()
    connect(server).generate([request() for _ in range(20)], GREEDY)
    assert server.listed == 1


# Limits.


def test_a_request_over_its_limit_is_not_sent(serve: Serve, connect: Connect) -> None:
    server = serve()
    engine = connect(server, renderer=Letters())
    prompt = "[user]" + "x" * 100 + "[assistant]"
    fits, over = (request("x" * 100, 8, limit=len(prompt) + room) for room in (8, 7))
    assert ask(engine, fits).finish == "stop"
    reply = ask(engine, over)
    assert (reply.finish, reply.n_requests, reply.prompt_tokens) == ("overflow", 0, 0)
    assert len(server.seen) == 1


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_the_servers_own_limit_holds_too(serve: Serve, connect: Connect, api: str) -> None:
    prompt = "[user]" + "x" * 100 + "[assistant]"
    told = serve(models=lists("m", max_model_len=len(prompt) + 8))
    engine = connect(told, renderer=Letters(), api=api)
    assert [ask(engine, request("x" * 100, n)).finish for n in (8, 9)] == ["stop", "overflow"]
    engine = connect(told, renderer=Letters(), api=api, max_model_len=len(prompt) + 7)
    assert [ask(engine, request("x" * 100, n)).finish for n in (7, 8)] == ["stop", "overflow"]
    llama = serve(models=lists("m", meta={"n_ctx": len(prompt) + 8, "n_ctx_train": 1 << 20}))
    engine = connect(llama, renderer=Letters(), api=api)
    assert [ask(engine, request("x" * 100, n)).finish for n in (8, 9)] == ["stop", "overflow"]


def test_tokens_are_counted_only_where_bytes_do_not_prove_that_a_request_fits(serve: Serve, connect: Connect) -> None:
    letters = Letters()
    engine = connect(serve(), renderer=letters)
    assert ask(engine, request("x" * 100, limit=200)).finish == "stop"
    assert letters.counted == 0
    assert ask(engine, request("é" * 100, limit=150)).finish == "stop"  # 200 bytes, 100 tokens
    assert letters.counted == 1


def test_without_a_template_contents_are_counted(serve: Serve, connect: Connect) -> None:
    engine = connect(serve(), count=lambda text: len(text.split()))
    assert ask(engine, request("word " * 100, limit=130)).finish == "stop"
    assert ask(engine, request("word " * 100, limit=107)).finish == "overflow"
    assert ask(connect(serve()), request("word " * 100, limit=107)).finish == "stop"  # nothing to count with


def test_usage_is_counted_where_the_server_does_not_tell_it(serve: Serve, connect: Connect) -> None:
    bare = says(
        {"choices": [{"message": {"content": "1234"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": "7"}}
    )
    reply = ask(connect(serve([bare]), renderer=Letters()), request("x" * 100))
    assert (reply.prompt_tokens, reply.completion_tokens) == (len("[user]" + "x" * 100 + "[assistant]"), 4)


# Raw prompts, thinking, token ids.


def test_raw_prompts_are_rendered_here_as_text_or_ids(serve: Serve, connect: Connect) -> None:
    server = serve()
    letters = Letters()
    ask(connect(server, renderer=letters, api="completions"), request("Hi", thinking=False))
    reply = ask(connect(server, renderer=letters, api="completions", prompt_format="ids"), request("Hi"))
    text, ids = (seen.body["prompt"] for seen in server.seen)
    assert text == "[user]Hi[assistant][no thinking]"
    assert ids == list(reply.prompt_ids) == [ord(c) for c in "[user]Hi[assistant]"]
    assert {seen.path for seen in server.seen} == {"/v1/completions"}


def test_a_token_that_servers_put_first_themselves_is_not_sent_twice(serve: Serve, connect: Connect) -> None:
    class Begun(Letters):
        bos_token, bos_token_id = "[", ord("[")

        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            return [ord("[")] * add_special_tokens + super().encode(text)

    server = serve()
    ask(connect(server, renderer=Begun(), api="completions"), request("Hi"))
    assert server.seen[0].body["prompt"] == "user]Hi[assistant]"


def test_thinking_over_its_tokens_is_closed_and_continued_in_a_chat(serve: Serve, connect: Connect) -> None:
    server = serve([said("<think>Hm. \n", "length"), said("  The answer.\n")])
    reply = ask(connect(server), request(think=5, thinking=True))
    assert reply.text == "<think>Hm." + INSERTED + "The answer."
    assert (reply.forced_close, reply.n_requests, reply.finish) == (True, 2, "stop")
    assert (reply.prompt_tokens, reply.completion_tokens) == (14, 6)
    first, second = (seen.body for seen in server.seen)
    assert (first["max_tokens"], second["max_tokens"]) == (5, 8)
    assert "continue_final_message" not in first
    assert second["messages"] == [*first["messages"], {"role": "assistant", "content": "<think>Hm." + INSERTED}]
    assert (second["continue_final_message"], second["add_generation_prompt"]) == (True, False)


def test_thinking_that_ended_by_itself_is_continued_all_the_same(serve: Serve, connect: Connect) -> None:
    server = serve([said("<think>Hm.</think>The ans"), said("wer.")])
    reply = ask(connect(server), request(think=5))
    assert (reply.text, reply.forced_close, reply.n_requests) == ("<think>Hm.</think>The answer.", False, 2)


def test_a_server_that_repeats_what_it_continues_is_understood(serve: Serve, connect: Connect) -> None:
    opening = "<think>Hm." + INSERTED
    for repeated in (opening, opening.rstrip()):
        server = serve([said("<think>Hm.", "length"), said(repeated + "The answer.")])
        assert ask(connect(server), request(think=5)).text == opening + "The answer."
    split = said("The answer.", message={"reasoning_content": f"Hm.\n\n{CLOSING}"})
    all_of_it = said(None, message={"reasoning_content": "The answer."})
    for second in (split, all_of_it):
        server = serve([said("<think>Hm.", "length"), second])
        assert ask(connect(server), request(think=5)).text == opening + "The answer."


def test_thinking_that_the_server_split_off_is_put_back(serve: Serve, connect: Connect) -> None:
    engine = connect(
        serve(
            [
                said("Seven.", message={"reasoning_content": "Hm."}),
                said("Seven.", message={"reasoning": "Hm."}),
                said(None, "length", message={"reasoning_content": "Hm."}),
            ]
        )
    )
    assert ask(engine).text == "<think>\nHm.\n</think>\n\nSeven."
    assert ask(engine).text == "<think>\nHm.\n</think>\n\nSeven."
    assert ask(engine).text == "<think>\nHm."  # cut inside its thinking: nothing closed it


def test_if_the_second_stage_fails_there_is_no_reply(serve: Serve, connect: Connect) -> None:
    reply = ask(connect(serve([said("<think>Hm.", "length"), fails(400)])), request(think=5))
    assert (reply.text, reply.finish, reply.n_requests, reply.prompt_tokens) == ("", "error", 2, 7)


def codes(text: str) -> list[int]:
    return [ord(c) for c in text]


def test_ids_go_on_where_the_thinking_was_cut_and_what_was_inserted_is_marked(serve: Serve, connect: Connect) -> None:
    def told(text: str, ids: Sequence[int], finish: str = "stop") -> Step:
        rows = [{"id": i, "token": "", "logprob": -0.5} for i in ids]
        return said(text, finish, logprobs={"content": rows})

    server = serve([told("<think>Hm", codes("<think>Hm"), "length"), told("Yes", [*codes("Yes"), 0])])
    engine = connect(server, renderer=Letters(), api="completions", prompt_format="ids", logprobs=True)
    reply = ask(engine, request("Hi", think=9))
    first, second = (seen.body["prompt"] for seen in server.seen)
    assert second == first + codes("<think>Hm" + INSERTED)
    assert server.seen[0].body["logprobs"] == 1
    assert reply.text == "<think>Hm" + INSERTED + "Yes"
    assert list(reply.prompt_ids) == first
    assert list(reply.completion_ids) == [*codes("<think>Hm" + INSERTED + "Yes"), 0]
    assert reply.inserted == (9, 9 + len(INSERTED))
    assert reply.logprobs == (*[-0.5] * 9, *[0.0] * len(INSERTED), *[-0.5] * 4)


def test_an_end_token_of_the_thinking_is_left_out_of_what_goes_on(serve: Serve, connect: Connect) -> None:
    thought = codes("<think>Hm</think>")
    server = serve([said("<think>Hm</think>", token_ids=[*thought, 0]), said("Yes", token_ids=codes("Yes"))])
    reply = ask(connect(server, renderer=Letters(), api="completions", prompt_format="ids"), request("Hi", think=20))
    first, second = (seen.body["prompt"] for seen in server.seen)
    assert second == first + thought
    assert (list(reply.completion_ids), reply.inserted) == (thought + codes("Yes"), (0, 0))


def test_ids_that_the_server_tells_in_a_chat_show_what_was_inserted(serve: Serve, connect: Connect) -> None:
    prompt, opening = codes("[user]Hi[assistant]"), codes("<think>Hm" + INSERTED)

    def told(text: str, before: Sequence[int], finish: str = "stop") -> Step:
        ids = codes(text)
        step = said(text, finish, token_ids=ids, logprobs={"content": [{"logprob": -0.5}] * len(ids)})
        return says({"prompt_token_ids": [*before], **json.loads(step.body)})

    server = serve([told("<think>Hm", prompt, "length"), told("Yes", [*prompt, *opening])])
    reply = ask(connect(server, token_ids=True, logprobs=True), request("Hi", think=9))
    assert server.seen[0].body["logprobs"] is True
    assert list(reply.prompt_ids) == prompt
    assert list(reply.completion_ids) == opening + codes("Yes")
    assert reply.inserted == (9, 9 + len(INSERTED))
    assert reply.logprobs == (*[-0.5] * 9, *[0.0] * len(INSERTED), *[-0.5] * 3)


# Several requests, several servers.


def test_as_many_requests_are_under_way_as_were_asked_for(serve: Serve, connect: Connect) -> None:
    together = threading.Barrier(40)

    def meet(_: Seen) -> Step:
        together.wait(15)  # breaks unless all 40 are inside
        return said()

    replies = connect(serve(meet), concurrency=40).generate([request() for _ in range(40)], GREEDY)
    assert {reply.finish for reply in replies} == {"stop"}


def test_no_more_requests_are_under_way_than_were_asked_for(serve: Serve, connect: Connect) -> None:
    inside, most, lock = 0, 0, threading.Lock()

    def count(_: Seen) -> Step:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        threading.Event().wait(0.005)
        with lock:
            inside -= 1
        return said()

    replies = connect(serve(count), concurrency=3).generate([request() for _ in range(30)], GREEDY)
    assert most == 3
    assert {reply.n_requests for reply in replies} == {1}


def test_requests_go_to_the_server_with_the_fewest(serve: Serve, connect: Connect) -> None:
    together = threading.Barrier(6)

    def meet(_: Seen) -> Step:
        together.wait(15)
        return said()

    servers = [serve(meet) for _ in range(3)]
    connect(*servers, concurrency=8).generate([request() for _ in range(6)], GREEDY)
    assert [len(server.seen) for server in servers] == [2, 2, 2]


def test_a_server_that_dies_costs_each_request_one_attempt_at_most(serve: Serve, connect: Connect) -> None:
    dead, alive = serve(lambda _: Step(then="reset", promised=9)), serve()
    replies = connect(dead, alive, concurrency=4).generate([request() for _ in range(40)], GREEDY)
    assert {reply.text for reply in replies} == {"fine"}
    assert max(reply.n_requests for reply in replies) == 2
    assert len(dead.seen) <= 4  # then it rests
    assert len(alive.seen) == 40


def test_another_attempt_goes_to_another_server(serve: Serve, connect: Connect) -> None:
    troubled, healthy = serve(lambda _: fails(500)), serve()
    engine = connect(troubled, healthy)
    assert [ask(engine).n_requests for _ in range(3)] == [2, 2, 2]
    assert [len(server.seen) for server in (troubled, healthy)] == [3, 3]


def test_closing_ends_what_is_under_way(serve: Serve, connect: Connect) -> None:
    asked = threading.Event()

    def hang(_: Seen) -> Step:
        asked.set()
        return Step(then="hang")

    engine = connect(serve(hang), concurrency=1)
    futures = [engine.submit(request(), GREEDY) for _ in range(3)]
    assert asked.wait(10)
    engine.close()
    for future in futures:
        with pytest.raises(CancelledError):
            future.result(5)


def test_a_cancelled_request_gives_its_slot_back(serve: Serve, connect: Connect) -> None:
    asked = threading.Event()

    def hang_once(_: Seen) -> Step:
        first = not asked.is_set()
        asked.set()
        return Step(then="hang") if first else said()

    engine = connect(serve(hang_once), concurrency=1)
    first = engine.submit(request(), GREEDY)
    assert asked.wait(10)
    waiting, last = engine.submit(request(), GREEDY), engine.submit(request(), GREEDY)
    waiting.cancel()
    first.cancel()
    assert last.result(10).text == "fine"


def test_a_server_that_is_gone_ends_the_run_instead_of_answering_it_with_nothing(
    serve: Serve, connect: Connect
) -> None:
    server = serve([replace(said("here"), then="close")], replace(lists("m"), then="close"))
    engine = connect(server, retries=2)
    assert ask(engine).text == "here"
    server.__exit__()
    with pytest.raises(ModelError, match="start the server again, the same command goes on"):
        ask(engine)


def test_while_another_server_answers_none_is_missed(serve: Serve, connect: Connect) -> None:
    gone, there = serve(models=replace(lists("m"), then="close")), serve()
    engine = connect(gone, there, retries=3)
    engine.run(engine._prepared()).result()
    gone.__exit__()
    assert {reply.finish for reply in engine.generate([request()] * 8, GREEDY)} == {"stop"}
