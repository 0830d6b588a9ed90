"""The real client accepts what the server sends, and gets the errors that the API would give it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anthropic
import pytest

from tests.messages_api import MessagesApi, cut, error_event, fault, reply

Start = Callable[..., MessagesApi]
MODEL = "claude-sonnet-5-5"


def client(server: MessagesApi) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key="x", max_retries=0)


def ask(server: MessagesApi, **fields: Any) -> Any:
    request: dict[str, Any] = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": "Hi."}]}
    with client(server).messages.stream(**(request | fields)) as stream:
        return stream.get_final_message()


def test_a_conversation_with_tools_and_thinking_goes_round(api: Start):
    arguments = {"path": "ä/𝄞.txt", "text": 'a "quoted"\nline ' * 40}
    server = api([reply("Writing.", thinking="Hm.", tools=[("write", arguments), ("now", {})]), reply("Done.")])
    message = ask(server)
    thinking, text, write, now = message.content
    assert (thinking.thinking, text.text, message.stop_reason) == ("Hm.", "Writing.", "tool_use")
    assert (write.name, write.input, now.input) == ("write", arguments, {})
    results = [{"type": "tool_result", "tool_use_id": use.id, "content": "ok"} for use in (write, now)]
    messages = [{"role": "user", "content": "Hi."}, message.to_param(), {"role": "user", "content": results}]
    assert ask(server, messages=messages).content[0].text == "Done."


def test_usage_tells_what_the_cache_served(api: Start):
    server = api([reply("One."), reply("Two.")])
    system = [{"type": "text", "text": "rule " * 1000, "cache_control": {"type": "ephemeral"}}]
    first, second = (ask(server, system=system).usage for _ in range(2))
    assert (first.cache_read_input_tokens, second.cache_creation_input_tokens) == (0, 0)
    assert first.cache_creation_input_tokens == second.cache_read_input_tokens > 1200
    assert second.input_tokens > 0


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, anthropic.BadRequestError),
        (401, anthropic.AuthenticationError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
        (529, anthropic.InternalServerError),
    ],
)
def test_a_fault_is_the_error_of_its_status(api: Start, status: int, kind: type[anthropic.APIStatusError]):
    with pytest.raises(kind, match="as scripted") as raised:
        ask(api([fault(status, "as scripted", headers={"retry-after": "7"})]))
    assert raised.value.status_code == status
    assert raised.value.response.headers["retry-after"] == "7"


def test_an_error_event_is_a_status_error_of_its_type(api: Start):
    with pytest.raises(anthropic.APIStatusError) as raised:
        ask(api([error_event(after_events=4)]))
    assert raised.value.type == "overloaded_error"


def test_a_cut_stream_is_no_message(api: Start):
    server = api([cut(reply(tools=[("write", {"path": "a", "text": "b" * 100})]), after_events=6)])
    with pytest.raises(Exception, match=r"(?i)incomplete|peer closed"):
        ask(server)


def test_a_broken_rule_is_a_bad_request(api: Start):
    server = api([reply("Hi.")], refusals=True)
    with pytest.raises(anthropic.BadRequestError, match="must be non-empty"):
        ask(server, messages=[{"role": "user", "content": [{"type": "text", "text": ""}]}])
    assert [refusal.status for refusal in server.refused] == [400]


def test_models_and_token_counts_are_readable(api: Start):
    sdk = client(api())
    assert MODEL in [model.id for model in sdk.models.list()]
    counted = sdk.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "x" * 400}])
    assert 100 < counted.input_tokens < 120
