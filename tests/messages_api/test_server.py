"""The server over plain HTTP: routes, refusals, the script, deliveries, and what a test can see."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.messages_api import MessagesApi, cut, error_event, fault, reply, slow, step_from_json, too_long
from tests.messages_api.stream import event, pieces, stream_events

Json = dict[str, Any]
Start = Callable[..., MessagesApi]
HEADERS = {"anthropic-version": "2023-06-01", "authorization": "Bearer x"}
ROOT = Path(__file__).parents[2]


def ask(text: str = "Hello.", **fields: Any) -> Json:
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}], **fields}


def send(
    url: str, body: Json | bytes | None, path: str = "/v1/messages", method: str = "POST", headers: Json = HEADERS
) -> tuple[http.client.HTTPResponse, bytes]:
    """One request on a connection of its own: the response and its data. Raises: IncompleteRead when it breaks off."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection.request(method, parts.path + path, data, headers)
    response = connection.getresponse()
    received = response.read()
    connection.close()
    return response, received


def events_of(data: bytes) -> list[Json]:
    lines = data.decode().split("\n")
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def error_of(data: bytes) -> tuple[str, str]:
    answer = json.loads(data)
    assert answer["type"] == "error"
    return answer["error"]["type"], answer["error"]["message"]


def test_a_request_without_stream_gets_one_message(api: Start):
    server = api([reply("Hi.", tools=[("read", {"path": "a"}), ("read", {"path": "b"}, "mine")])])
    response, data = send(server.url, ask())
    message = json.loads(data)
    assert (response.status, message["stop_reason"]) == (200, "tool_use")
    assert [block["type"] for block in message["content"]] == ["text", "tool_use", "tool_use"]
    assert message["content"][1]["id"].startswith("toolu_")
    assert message["content"][2]["id"] == "mine"


def test_a_stream_has_the_events_of_the_api_in_their_order(api: Start):
    server = api([reply("Hello there.", thinking="Hm.", tools=[("now", {})])])
    _, data = send(server.url, ask(stream=True))
    events = events_of(data)
    outline = [(each["type"], each.get("index")) for each in events if each["type"] != "content_block_delta"]
    blocks = [(f"content_block_{end}", index) for index in range(3) for end in ("start", "stop")]
    assert outline == [
        ("message_start", None),
        ("ping", None),
        *blocks,
        ("message_delta", None),
        ("message_stop", None),
    ]
    deltas = [each["delta"] for each in events if each["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas) == "Hello there."
    assert sum(delta["type"] == "text_delta" for delta in deltas) > 2
    assert [delta["partial_json"] for delta in deltas if delta["type"] == "input_json_delta"] == [""]


def test_arguments_are_split_inside_their_json():
    message = {"content": [{"type": "tool_use", "id": "t", "name": "w", "input": {"text": "a" * 50}}], "usage": {}}
    events = stream_events(message | {"stop_reason": "tool_use", "stop_sequence": None})
    parts = [
        each["delta"]["partial_json"]
        for each in events_of(b"".join(events))
        if "delta" in each and each.get("index") == 0
    ]
    assert json.loads("".join(parts)) == {"text": "a" * 50}
    assert len(parts) > 3


def test_no_piece_of_a_stream_ends_where_an_event_ends():
    data = b"".join(event("ping", pad="x" * size) for size in range(200))
    parts = list(pieces(data))
    assert b"".join(parts) == data
    assert len(parts) > 5
    assert not any(part.endswith(b"\n") for part in parts[:-1])


@pytest.mark.parametrize(
    ("headers", "status", "kind"),
    [
        ({"anthropic-version": "x"}, 401, "authentication_error"),
        ({"anthropic-version": "x", "authorization": "Bearer "}, 401, "authentication_error"),
        ({"x-api-key": "k"}, 400, "invalid_request_error"),
        ({"x-api-key": "k", "anthropic-version": "x"}, 200, ""),
    ],
)
def test_key_and_version_are_required(api: Start, headers: Json, status: int, kind: str):
    server = api([reply("Hi.")], refusals=True)
    response, data = send(server.url, ask(), headers=headers)
    assert response.status == status
    assert status == 200 or error_of(data)[0] == kind
    assert [refusal.status for refusal in server.refused] == ([] if status == 200 else [status])


def test_a_broken_rule_is_refused_takes_no_step_and_is_seen(api: Start):
    server = api([reply("Hi.")], refusals=True)
    response, data = send(server.url, ask(temperature=1, model="claude-opus-5-5"))
    assert (response.status, error_of(data)) == (
        400,
        ("invalid_request_error", "`temperature` is deprecated for this model."),
    )
    assert (server.requests, server.steps_left) == ([], 1)
    assert server.refused[0].body["temperature"] == 1


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"{", "The request body is not valid JSON"),
        (b'{"max_tokens": NaN}', "The request body is not valid JSON: NaN is no JSON value"),
        (b'{"model": "\\ud83d"}', "The request body is not valid JSON: no low surrogate in string"),
        (b"[]", "The request body is not a JSON object"),
    ],
)
def test_a_body_that_is_no_json_object_is_refused(api: Start, raw: bytes, message: str):
    response, data = send(api(refusals=True).url, raw)
    assert response.status == 400
    assert error_of(data)[1].startswith(message)


def test_a_body_over_32_mb_is_too_large(api: Start):
    response, data = send(api(refusals=True).url, ask("x" * (32 * 1024 * 1024)))
    assert (response.status, error_of(data)) == (413, ("request_too_large", "Request exceeds the maximum size"))


def test_an_unknown_path_is_not_found(api: Start):
    server = api(refusals=True)
    response, data = send(server.url, ask(), path="/v1/v1/messages")
    assert (response.status, error_of(data)) == (404, ("not_found_error", "Not found: POST /v1/v1/messages"))
    assert [refusal.status for refusal in server.refused] == [404]


def test_a_prefix_is_part_of_every_path(api: Start):
    server = api([reply("Hi.")], prefix="/gw/anthropic")
    assert send(server.url, ask())[0].status == 200
    assert server.exchanges[0].path == "/gw/anthropic/v1/messages"


def test_models_are_listed_with_their_limits(api: Start):
    _, data = send(api(models={"m": (5, 3)}).url, None, "/v1/models?limit=100", "GET")
    [model] = json.loads(data)["data"]
    assert (model["id"], model["max_input_tokens"], model["max_tokens"]) == ("m", 5, 3)


def test_tokens_are_counted_without_taking_a_step(api: Start):
    server = api([reply("Hi.")])
    body = ask("x" * 4000)
    del body["max_tokens"]
    _, data = send(server.url, body, "/v1/messages/count_tokens")
    assert 1000 < json.loads(data)["input_tokens"] < 1020
    assert server.steps_left == 1


def test_a_prompt_over_the_window_is_too_long(api: Start):
    response, data = send(api([reply("Hi.")], window_tokens=100, refusals=True).url, ask("x" * 4000))
    assert response.status == 400
    assert error_of(data)[1] == "prompt is too long: 1006 tokens > 100 maximum"


def test_a_script_that_runs_dry_says_so(api: Start):
    server = api([reply("Hi.")], refusals=True)
    send(server.url, ask())
    response, data = send(server.url, ask())
    assert (response.status, error_of(data)) == (500, ("api_error", "the script has no step for request 2"))
    assert server.refused[0].message == "the script has no step for request 2"


def test_a_script_may_be_a_function_of_the_body_and_so_may_a_step(api: Start):
    server = api(lambda body: reply(body["messages"][0]["content"].upper()))
    assert json.loads(send(server.url, ask("shout"))[1])["content"][0]["text"] == "SHOUT"
    server.reset([lambda body: fault(529)])
    assert send(server.url, ask())[0].status == 529


def test_what_a_script_raises_reaches_the_test(api: Start):
    def script(body: Json) -> Any:
        assert body["model"] == "n", "wrong model"

    server = api(script, refusals=True)
    assert send(server.url, ask())[0].status == 500
    assert "AssertionError: wrong model" in server.refused[0].message


def test_a_fault_has_its_status_type_and_headers_and_counts_as_a_request(api: Start):
    server = api([fault(429, headers={"retry-after": "2"}), too_long(9, 5)])
    response, data = send(server.url, ask())
    assert (response.status, response.headers["retry-after"], error_of(data)[0]) == (429, "2", "rate_limit_error")
    assert error_of(send(server.url, ask())[1]) == (
        "invalid_request_error",
        "prompt is too long: 9 tokens > 5 maximum",
    )
    assert (len(server.requests), server.usages, len(server.times)) == (2, [], 2)


@pytest.mark.parametrize("after_events", [0, 1, 4, -3])
def test_a_cut_reply_ends_after_so_many_events_without_an_end(api: Start, after_events: int):
    step = reply("Hello there, how are you?")
    whole = events_of(send(api([step]).url, ask(stream=True))[1])
    with pytest.raises(http.client.IncompleteRead) as broken:
        send(api([cut(step, after_events=after_events)]).url, ask(stream=True))
    assert [e["type"] for e in events_of(broken.value.partial)] == [e["type"] for e in whole[:after_events]]


def test_a_reply_can_be_cut_inside_an_event_and_inside_plain_json(api: Start):
    server = api([cut(reply("Hello."), after_bytes=30)] * 2)
    with pytest.raises(http.client.IncompleteRead) as broken:
        send(server.url, ask(stream=True))
    assert len(broken.value.partial) == 30
    with pytest.raises(http.client.IncompleteRead):
        send(server.url, ask())


def test_an_error_event_ends_the_stream_properly(api: Start):
    server = api([error_event(after_events=3)] * 2)
    events = events_of(send(server.url, ask(stream=True))[1])
    assert [each["type"] for each in events] == ["message_start", "ping", "content_block_start", "error"]
    assert events[-1]["error"] == {"type": "overloaded_error", "message": "Overloaded"}
    assert send(server.url, ask())[0].status == 529


def test_a_slow_reply_waits_before_its_headers_and_between_events(api: Start):
    server = api([slow(reply("Hi."), first_byte_seconds=0.05, between_seconds=0.01)])
    events = events_of(send(server.url, ask(stream=True))[1])
    assert server.exchanges[0].server_seconds >= 0.05 + 0.01 * (len(events) - 1)


def test_closing_does_not_wait_for_a_slow_reply():
    with MessagesApi([slow(reply("Hi."), first_byte_seconds=60)]) as server:
        broken: list[Exception] = []
        client = threading.Thread(target=_expect_break, args=(server.url, broken))
        client.start()
        server.wait_for(1)
    client.join(10)
    assert len(broken) == 1


def _expect_break(url: str, broken: list[Exception]) -> None:
    try:
        send(url, ask(stream=True))
    except (ConnectionError, http.client.HTTPException) as error:
        broken.append(error)


def test_a_client_that_goes_away_is_noted(api: Start):
    server = api([slow(reply("x" * 5000), between_seconds=0.02)])
    parts = urlsplit(server.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    connection.request("POST", "/v1/messages", json.dumps(ask(stream=True)), HEADERS)
    connection.getresponse().read(10)
    connection.close()
    server.wait_until(lambda: server.exchanges[0].disconnected)
    assert server.exchanges[0].sent is None


def test_one_connection_serves_many_requests(api: Start):
    server = api([reply("Hi."), fault(500), reply("Hi.")])
    parts = urlsplit(server.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    statuses = []
    for stream in (True, False, True):
        connection.request("POST", "/v1/messages", json.dumps(ask(stream=stream)), HEADERS)
        socket_used = connection.sock
        response = connection.getresponse()
        response.read()
        statuses.append(response.status)
        assert connection.sock is socket_used
    assert statuses == [200, 500, 200]


def test_what_was_sent_can_be_seen(api: Start):
    server = api([reply("Hi.", usage={"output_tokens": 77})])
    send(server.url, ask(stream=True))
    assert server.requests == [ask(stream=True)]
    assert server.headers[0]["Anthropic-Version"] == "2023-06-01"
    assert server.usages[0]["output_tokens"] == 77
    [(received, sent)] = server.times
    assert 0 < sent - received < 1


def test_requests_share_equal_blocks_of_equal_prefixes_and_stay_what_was_received(api: Start):
    server = api([reply("Hi.")] * 2)
    blocks = [{"type": "text", "text": f"{number}"} for number in range(4)]
    marked = [*blocks[:3], blocks[3] | {"cache_control": {"type": "ephemeral"}}]
    bodies = [
        ask() | {"messages": [{"role": "user", "content": content}], "system": "s"} for content in (marked, blocks)
    ]
    for body in bodies:
        send(server.url, body)
    assert server.requests == bodies
    first, second = (request["messages"][0]["content"] for request in server.requests)
    assert first[0] is second[0]


def test_waiting_for_a_request_that_never_comes_says_what_was_seen(api: Start):
    with pytest.raises(TimeoutError, match="0 of 1 requests arrived"):
        api().wait_for(1, timeout_seconds=0.01)


def test_thinking_signed_by_one_server_is_known_to_the_next(api: Start):
    thought = json.loads(send(api([reply("Hi.", thinking="Hm.")]).url, ask())[1])["content"]
    own = {"type": "thinking", "thinking": "Own.", "signature": "as scripted"}
    server = api([reply(blocks=[own, {"type": "text", "text": "Hi."}]), reply("Hi.")])
    scripted = json.loads(send(server.url, ask())[1])["content"]
    turns = [{"role": role, "content": content} for role, content in (("assistant", thought), ("user", "And?"))]
    turns += [{"role": role, "content": content} for role, content in (("assistant", scripted), ("user", "And?"))]
    body = ask()
    body["messages"] += turns
    assert send(server.url, body)[0].status == 200


@pytest.mark.parametrize(
    ("value", "step"),
    [
        ("Hi.", reply("Hi.")),
        ({"reply": {"tools": [["read", {"path": "a"}, "t1"]]}}, reply(tools=[("read", {"path": "a"}, "t1")])),
        ({"fault": {"status": 529}}, fault(529)),
        (
            {"slow": {"of": {"cut": {"of": "Hi.", "after_events": 2}}, "between_seconds": 1}},
            slow(cut(reply("Hi."), after_events=2), between_seconds=1),
        ),
    ],
)
def test_a_step_of_a_file_is_the_step_of_the_function(value: Any, step: Any):
    assert step_from_json(value) == step


@pytest.mark.parametrize("value", [7, {}, {"answer": {}}, {"reply": {"txt": "Hi."}}, {"reply": []}])
def test_a_step_that_does_not_exist_is_an_error(value: Any):
    with pytest.raises(ValueError, match="step"):
        step_from_json(value)


def test_it_serves_a_script_file_as_a_process_and_logs_what_it_gets(tmp_path: Path):
    script, log = tmp_path / "script.json", tmp_path / "log"
    script.write_text('["Hi."]')
    command = [sys.executable, "-m", "tests.messages_api", str(script), "--port", "0", "--log", str(log)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = process.stdout.readline().strip()
        sent = json.dumps(ask(), indent=1).encode()
        assert send(url, sent)[0].status == 200
        assert send(url, ask())[0].status == 500
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    assert (log / "001.json").read_bytes() == sent
    refused = json.loads((log / "refused-001.json").read_text())
    assert (refused["status"], refused["body"]) == (500, ask())
    [line] = (log / "exchanges.jsonl").read_text().splitlines()
    assert json.loads(line)["usage"]["output_tokens"] > 0
