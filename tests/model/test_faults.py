from typing import get_args

import anthropic
import httpx2
import pytest

from tinyclaw.errors import ModelError, PromptTooLong
from tinyclaw.model.faults import EVENT_KINDS, KINDS, Place, kind_of, to_model_error

PLACE = Place("http://h:1/v1/messages", "claude-x", "sk-secret")
ABSTRACT = {anthropic.AnthropicError, anthropic.APIError, anthropic.APIStatusError}
TRANSPORT = {value for value in vars(httpx2).values() if isinstance(value, type) and issubclass(value, Exception)} - {
    httpx2.HTTPError,
    httpx2.RequestError,
}
REQUEST = httpx2.Request("POST", PLACE.url)


def descendants(cls):
    return {cls} | {each for child in cls.__subclasses__() for each in descendants(child)}


def status_error(status, body, headers=None, cls=anthropic.APIStatusError):
    response = httpx2.Response(status, request=REQUEST, headers=headers or {})
    return cls("Error", response=response, body=body)


def problem(message, kind="invalid_request_error"):
    return {"type": "error", "error": {"type": kind, "message": message}}


def translate(error, now=0.0) -> ModelError:
    translated = to_model_error(error, PLACE, now)
    assert translated is not None
    return translated


@pytest.mark.parametrize("base", [anthropic.AnthropicError, httpx2.HTTPError])
def test_every_error_that_derives_from_the_root_is_mapped(base):
    unmapped = [
        cls.__qualname__
        for cls in (descendants(base) | (TRANSPORT if base is httpx2.HTTPError else set())) - ABSTRACT
        if cls not in (httpx2.HTTPError, httpx2.RequestError)
        and not any(ancestor.__name__ in KINDS for ancestor in cls.__mro__)
    ]
    assert unmapped == []


def test_every_type_of_error_event_is_mapped():
    from anthropic.types.shared.error_type import ErrorType

    assert set(get_args(ErrorType)) <= EVENT_KINDS.keys()


def test_a_bug_is_not_mapped():
    assert to_model_error(KeyError("x"), PLACE, 0.0) is None


def test_a_new_class_counts_as_its_base():
    class BrandNewError(anthropic.RateLimitError):
        pass

    assert kind_of(BrandNewError.__new__(BrandNewError)) == "rate_limit"


@pytest.mark.parametrize(
    ("status", "cls", "kind"),
    [
        (400, anthropic.BadRequestError, "invalid"),
        (401, anthropic.AuthenticationError, "auth"),
        (402, anthropic.PaymentRequiredError, "billing"),
        (403, anthropic.PermissionDeniedError, "auth"),
        (404, anthropic.NotFoundError, "not_found"),
        (408, anthropic.RequestTimeoutError, "timeout"),
        (409, anthropic.ConflictError, "server"),
        (429, anthropic.RateLimitError, "rate_limit"),
        (500, anthropic.InternalServerError, "server"),
        (503, anthropic.ServiceUnavailableError, "server"),
        (529, anthropic.OverloadedError, "overloaded"),
        (418, anthropic.APIStatusError, "invalid"),
    ],
)
def test_a_status_error_says_where_which_model_and_what_the_server_said(status, cls, kind):
    error = translate(status_error(status, problem("Because."), cls=cls))
    assert (error.kind, error.status) == (kind, status)
    assert str(error).startswith(f"http://h:1/v1/messages answered {status} for model claude-x: Because.")


@pytest.mark.parametrize(("type_", "kind"), [("overloaded_error", "overloaded"), ("api_error", "server")])
def test_an_error_event_inside_a_stream_is_judged_by_its_type(type_, kind):
    error = translate(status_error(200, problem("Busy", type_)))
    assert error.kind == kind
    assert "broke off its answer" in str(error)


@pytest.mark.parametrize(
    "message",
    [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000",
    ],
)
def test_a_prompt_that_is_too_long_is_told_apart(message):
    error = translate(status_error(400, problem(message), cls=anthropic.BadRequestError))
    assert isinstance(error, PromptTooLong)
    assert message in str(error)


def test_a_body_that_is_too_large_counts_as_too_long():
    error = translate(status_error(413, problem("Too big"), cls=anthropic.ContentTooLargeError))
    assert isinstance(error, PromptTooLong)


def test_the_server_wish_to_wait_is_read():
    headers = {"retry-after": "7"}
    assert translate(status_error(429, None, headers, anthropic.RateLimitError)).retry_after_seconds == 7


def test_the_lowest_cause_of_a_lost_connection_is_told():
    error = anthropic.APIConnectionError(request=REQUEST)
    error.__cause__ = httpx2.ConnectError("[Errno 111] Connection refused")
    text = str(translate(error))
    assert text.startswith("http://h:1/v1/messages: no connection: [Errno 111] Connection refused; check")


def test_the_key_is_never_shown():
    error = status_error(401, "headers were: x-api-key: sk-secret", cls=anthropic.AuthenticationError)
    assert "sk-secret" not in str(translate(error))
    assert "x-api-key: [key]" in str(translate(error))


def test_a_page_of_html_becomes_a_short_line():
    error = status_error(502, "<html>\n" + "<p>Bad gateway</p>\n" * 500, cls=anthropic.InternalServerError)
    text = str(translate(error))
    assert "\n" not in text
    assert len(text) < 600
