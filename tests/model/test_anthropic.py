import socket
import threading
import time

import pytest

from tests.messages_api import cut, error_event, fault, reply, slow, too_long
from tinyclaw.errors import Interrupted, ModelError, PromptTooLong
from tinyclaw.model.anthropic import AnthropicModel
from tinyclaw.model.base import finish_import
from tinyclaw.model.connection import Endpoint
from tinyclaw.model.retry import RetryPolicy
from tinyclaw.types import Interrupt, Reply, Request, Retrying, Text, TextDelta, Thinking, ToolUse

MODEL = "claude-sonnet-5-5"
QUICK = RetryPolicy(max_tries=2, first_seconds=0.0, longest_seconds=0.0)
PATIENT = RetryPolicy(max_tries=5, first_seconds=0.0, longest_seconds=0.0)
WRITE = {"name": "write", "description": "Write.", "input_schema": {"type": "object", "properties": {}}}


@pytest.fixture(autouse=True, scope="module")
def sdk():
    finish_import()


def model_at(url, *, retry=QUICK, idle_seconds=20.0, **environment) -> AnthropicModel:
    variables = {"ANTHROPIC_API_KEY": "sk-secret", "ANTHROPIC_BASE_URL": url, **environment}
    return AnthropicModel(MODEL, Endpoint.from_environment(variables, idle_seconds=idle_seconds), retry)


def request(text="Hi", *more, **params) -> Request:
    first = {"role": "user", "content": [{"type": "text", "text": text}]}
    return Request(MODEL, 1000, (WRITE,), (), (first, *more), params)


def ask(model, asked=None) -> list:
    return list(model.stream(asked or request(), Interrupt()))


def failure(model, asked=None) -> ModelError:
    """The error that ends the stream, after which no reply may have been seen."""
    events = []
    with pytest.raises(ModelError) as caught:
        for event in model.stream(asked or request(), Interrupt()):
            events.append(event)
    assert not [event for event in events if isinstance(event, Reply)]
    assert "sk-secret" not in str(caught.value)
    return caught.value


def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_the_reply_comes_last_after_its_deltas(api):
    server = api([reply("Hello there", thinking="Hm.", tools=[("write", {"path": "a"}, "toolu_1")])])
    *deltas, last = ask(model_at(server.url))
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "Hello there"
    thinking, *others = last.content
    assert isinstance(thinking, Thinking)
    assert others == [Text("Hello there"), ToolUse("toolu_1", "write", {"path": "a"})]


def test_the_request_goes_out_as_it_is(api):
    server = api([reply("Hi")])
    asked = request("ein „Text“ \u2028 😀", thinking={"type": "adaptive"})
    ask(model_at(server.url), asked)
    assert server.requests == [{**asked.to_wire(), "stream": True}]


def test_half_a_surrogate_pair_does_not_stop_a_request(api):
    server = api([reply("Hi")])
    ask(model_at(server.url), request("broken \ud83d emoji"))
    assert server.requests[0]["messages"][0]["content"][0]["text"] == "broken ? emoji"


def test_what_json_has_not_is_an_error_before_anything_is_sent():
    model = model_at("http://127.0.0.1:1")
    assert failure(model, request(temperature=float("nan"))).kind == "invalid"


def test_the_content_of_a_reply_can_be_sent_back(api):
    calls = [("write", {"path": "a"}, "functions.write:0"), ("write", {}, "same"), ("write", {}, "same")]
    server = api([reply(" ", thinking="Hm.", tools=calls), reply("Done", tools=[("write", {}, "same")])])
    model = model_at(server.url)
    first = ask(model)[-1]
    results = [{"type": "tool_result", "tool_use_id": use.id, "content": "ok"} for use in first.tool_uses]
    history = (
        {"role": "assistant", "content": [block.to_wire() for block in first.content]},
        {"role": "user", "content": results},
    )
    second = ask(model, request("Hi", *history))[-1]
    assert server.refused == []
    assert not {use.id for use in second.tool_uses} & {use.id for use in first.tool_uses}


def test_a_request_uses_the_connection_that_was_warmed_up(api):
    model = model_at(api([reply("Hi")]).url)
    model._endpoint.warm()
    for thread in [thread for thread in threading.enumerate() if thread.name == "warm up"]:
        thread.join(10)
    [warmed] = model._endpoint._idle
    assert ask(model)[-1].text == "Hi"
    assert model._endpoint._idle == [warmed]


def test_one_connection_serves_request_after_request(api):
    server = api([reply("One"), reply("Two"), reply("Three")])
    model = model_at(server.url)
    for _ in range(3):
        ask(model)
    assert len(model._endpoint._idle) == 1


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/"])
def test_base_urls_with_and_without_v1_lead_to_the_same_place(api, tail):
    server = api([reply("Hi")])
    ask(model_at(server.url + tail))
    assert [exchange.path for exchange in server.exchanges] == ["/v1/messages"]


def test_a_gateway_may_live_below_a_path_and_is_not_reached_through_the_proxy(api, monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = api([reply("Hi")], prefix="/gw/anthropic")
    ask(model_at(server.url))
    assert [exchange.path for exchange in server.exchanges] == ["/gw/anthropic/v1/messages"]


def test_a_key_is_sent_in_both_headers_and_a_token_in_one(api):
    server = api([reply("Hi"), reply("Hi")])
    ask(model_at(server.url))
    ask(model_at(server.url, ANTHROPIC_API_KEY="", ANTHROPIC_AUTH_TOKEN="token"))
    sent = [(headers["authorization"], headers["x-api-key"]) for headers in server.headers]
    assert sent == [("Bearer sk-secret", "sk-secret"), ("Bearer token", None)]


def test_a_wrong_path_is_shown_whole_with_the_model(api):
    server = api([], refusals=True)
    error = failure(model_at(server.url + "/elsewhere"))
    assert error.kind == "not_found"
    assert f"{server.url}/elsewhere/v1/messages answered 404 for model {MODEL}" in str(error)
    assert len(server.refused) == 1


def test_a_refused_connection_names_the_address():
    url = f"http://127.0.0.1:{closed_port()}"
    error = failure(model_at(url))
    assert error.kind == "connection"
    assert str(error).startswith(f"{url}/v1/messages: no connection")
    assert str(error).endswith("gave up after 2 tries")


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
def test_what_cannot_pass_is_asked_once(api, status):
    server = api([fault(status, headers={"retry-after": "0"})])
    failure(model_at(server.url))
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_asked_again(api, status):
    server = api([fault(status, "later"), reply("Hi")])
    events = ask(model_at(server.url))
    assert "later" in events[0].reason
    assert events[0] == Retrying(events[0].reason, 0.0, 1)
    assert events[-1].text == "Hi"


def test_the_total_of_tries_is_the_configured_one(api):
    server = api([fault(529) for _ in range(5)])
    assert failure(model_at(server.url, retry=PATIENT)).kind == "overloaded"
    assert server.steps_left == 0


def test_retry_after_is_waited_out(api):
    server = api([fault(429, headers={"retry-after": "0.3"}), fault(429, headers={"retry-after-ms": "200"}), reply("")])
    ask(model_at(server.url, retry=PATIENT))
    first, second, third = [exchange.received for exchange in server.exchanges]
    assert second - first >= 0.3
    assert third - second >= 0.2


def test_a_wait_of_minutes_is_not_begun(api):
    server = api([fault(429, headers={"retry-after": "600"})])
    assert "asks to wait 600 s" in str(failure(model_at(server.url)))
    assert len(server.requests) == 1


def test_a_prompt_that_is_too_long_is_told_apart(api):
    server = api([too_long(210_000, 200_000)])
    assert isinstance(failure(model_at(server.url)), PromptTooLong)
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", ["overloaded_error", "api_error"])
def test_an_error_inside_the_stream_is_tried_again(api, kind):
    server = api([error_event(kind, of=reply("Some text of the answer"), after_events=5), reply("Hi")])
    events = ask(model_at(server.url))
    assert [type(event) for event in events if not isinstance(event, TextDelta)] == [Retrying, Reply]
    assert events[-1].text == "Hi"


CALL = reply(tools=[("write", {"path": "a.txt", "content": "abc"})])
TWO_CALLS = reply(tools=[("write", {"path": "a.txt"}), ("write", {"path": "b.txt", "content": "abc"})])
CUTS = {
    "before the first event": cut(CALL, after_events=0),
    "before any argument": cut(CALL, after_events=3),
    "inside the arguments": cut(CALL, after_events=7),
    "inside an event": cut(CALL, after_bytes=700),
    "arguments whole, block not closed": cut(CALL, after_events=-3),
    "block closed, message not": cut(CALL, after_events=-2),
    "only message_stop missing": cut(CALL, after_events=-1),
    "inside the second of two calls": cut(TWO_CALLS, after_events=-6),
}


@pytest.mark.parametrize("step", CUTS.values(), ids=CUTS)
def test_a_stream_that_breaks_is_never_a_reply_and_is_tried_again(api, step):
    server = api([step, step])
    assert failure(model_at(server.url)).kind == "cut"
    assert len(server.requests) == 2


class RawServer:
    """Answers each connection with fixed bytes and closes it."""

    def __init__(self, data: bytes) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._data = data
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(1 << 20)
                connection.sendall(self._data)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1 << 20)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def raw():
    servers = []

    def start(body: bytes, kind: bytes = b"text/event-stream") -> RawServer:
        servers.append(RawServer(b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n\r\n%b" % (kind, body)))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<html>Please log in</html>", "cut"),
        (b'{"type": "message", "content": []}', "cut"),
        (b"event: message_start\ndata: {not json\n\n", "cut"),
        (b'event: message_start\ndata: ["a list"]\n\n', "server"),
        (b'event: message_stop\ndata: {"type": "message_stop"}\n\n', "cut"),
        (b"event: message_start\ndata: \xff\xfe\n\n", "cut"),
    ],
    ids=["html", "not a stream", "bad json", "wrong shape", "nothing but the end", "not utf-8"],
)
def test_a_server_that_speaks_something_else_is_an_error_not_a_traceback(raw, body, kind):
    assert failure(model_at(raw(body).url)).kind == kind


def test_a_silent_server_is_a_time_out_and_tried_again(api):
    server = api([slow(reply("Hi"), first_byte_seconds=30), reply("Hi")])
    events = ask(model_at(server.url, idle_seconds=0.3))
    assert isinstance(events[0], Retrying)
    assert "no sign of life" in events[0].reason
    assert events[-1].text == "Hi"


def test_a_slow_stream_is_no_silent_one(api):
    server = api([slow(reply("Word by word by word"), between_seconds=0.1)])
    assert ask(model_at(server.url, idle_seconds=0.7))[-1].text == "Word by word by word"


def seconds_to_interrupt(events, interrupt, wait_until) -> float:
    """Set the interrupt from another thread once ``wait_until`` returns; the time until it is felt."""
    at = []

    def press() -> None:
        wait_until()
        at.append(time.monotonic())
        interrupt.set()

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(Interrupted):
        list(events)
    return time.monotonic() - at[0]


@pytest.mark.parametrize(
    "step",
    [slow(reply("Hi"), first_byte_seconds=30), slow(reply("Hi"), between_seconds=30)],
    ids=["before the first byte", "in the middle"],
)
def test_an_interrupt_is_felt_at_once_and_closes_the_connection(api, step):
    server, interrupt = api([step, reply("Next")]), Interrupt()
    model = model_at(server.url)
    events = model.stream(request(), interrupt)
    assert seconds_to_interrupt(events, interrupt, lambda: server.wait_for(1)) < 1
    ended = [thread for thread in threading.enumerate() if thread.name == "messages api"]
    for thread in ended:
        thread.join(5)
        assert not thread.is_alive()
    assert ask(model)[-1].text == "Next"


def test_an_interrupt_during_the_connect_is_felt_at_once():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        interrupt, begun = Interrupt(), threading.Event()
        events = model_at(f"http://127.0.0.1:{port}").stream(request(), interrupt)
        threading.Timer(0.2, begun.set).start()
        assert seconds_to_interrupt(events, interrupt, begun.wait) < 1
        for filler in fillers:
            filler.close()


def test_an_interrupt_before_the_request_sends_nothing(api):
    server, interrupt = api([reply("Hi")]), Interrupt()
    interrupt.set()
    with pytest.raises(Interrupted):
        list(model_at(server.url).stream(request(), interrupt))
    assert server.requests == []


def test_leaving_the_stream_early_closes_the_connection(api):
    server = api([slow(reply("Word by word by word"), between_seconds=0.05), reply("Next")])
    model = model_at(server.url)
    events = model.stream(request(), Interrupt())
    next(events)
    events.close()
    server.wait_until(lambda: server.exchanges[0].disconnected)
    assert ask(model)[-1].text == "Next"


def test_streams_run_side_by_side(api):
    server = api(lambda body: slow(reply(body["messages"][0]["content"][0]["text"]), first_byte_seconds=0.3))
    model, answers = model_at(server.url), {}

    def run(text):
        answers[text] = ask(model, request(text))[-1].text

    threads = [threading.Thread(target=run, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {"a": "a", "b": "b", "c": "c"}
    assert max(received for received, _ in server.times) < min(sent for _, sent in server.times)


def test_a_large_output_limit_needs_no_special_care(api):
    server = api([reply("Hi")])
    asked = Request(MODEL, 64_000, (), (), request().messages)
    assert ask(model_at(server.url), asked)[-1].text == "Hi"
