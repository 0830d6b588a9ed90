"""Errors of the SDK and of its transport as ``ModelError``: what kind they are and what to do about them.

Classes are known by name, so that nothing has to be imported to list them. A class that is not in the
table counts as its nearest base that is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tinyclaw.errors import ModelError, ModelErrorKind, PromptTooLong
from tinyclaw.model.retry import retry_after_seconds

_STATUS_KINDS: dict[str, ModelErrorKind] = {
    "BadRequestError": "invalid",
    "AuthenticationError": "auth",
    "PaymentRequiredError": "billing",
    "PermissionDeniedError": "auth",
    "NotFoundError": "not_found",
    "RequestTimeoutError": "timeout",
    "ConflictError": "server",
    "PreconditionFailedError": "invalid",
    "ContentTooLargeError": "invalid",
    "UnprocessableEntityError": "invalid",
    "RateLimitError": "rate_limit",
    "ContractSpendLimitReachedError": "billing",
    "EnforcedSpendLimitReachedError": "billing",
    "RequestHeaderFieldsTooLargeError": "invalid",
    "ClientClosedRequestError": "invalid",
    "InternalServerError": "server",
    "GatewayTimeoutError": "timeout",
    "OverloadedError": "overloaded",
}
_OTHER_SDK_KINDS: dict[str, ModelErrorKind] = {
    "APIConnectionError": "connection",
    "APITimeoutError": "timeout",
    "APIResponseValidationError": "server",
    "APIWebhookValidationError": "invalid",
    "RetryableError": "connection",
    "CredentialsError": "auth",
    "WorkloadIdentityError": "auth",
    "MutuallyExclusiveAuthError": "auth",
    "StreamAlreadyConsumed": "server",
    "ToolsetUsageError": "invalid",
    "MissingDependencyError": "invalid",
}
_TRANSPORT_KINDS: dict[str, ModelErrorKind] = {
    "TransportError": "connection",
    "TimeoutException": "timeout",
    "ReadError": "cut",
    "RemoteProtocolError": "cut",
    "LocalProtocolError": "invalid",
    "SSEError": "cut",
    "UnsupportedProtocol": "invalid",
    "DecodingError": "cut",
    "TooManyRedirects": "invalid",
    "HTTPStatusError": "server",
    "InvalidURL": "invalid",
    "CookieConflict": "invalid",
    "StreamError": "cut",
    "JSONDecodeError": "cut",
    "UnicodeDecodeError": "cut",
}
_FALLBACKS: dict[str, ModelErrorKind] = {
    "APIStatusError": "invalid",
    "APIError": "server",
    "AnthropicError": "server",
    "HTTPError": "connection",
}
KINDS: dict[str, ModelErrorKind] = {**_STATUS_KINDS, **_OTHER_SDK_KINDS, **_TRANSPORT_KINDS}
"""Every class of error that is told apart, by name; what derives from one counts as it."""

EVENT_KINDS: dict[str, ModelErrorKind] = {
    "invalid_request_error": "invalid",
    "authentication_error": "auth",
    "billing_error": "billing",
    "permission_error": "auth",
    "not_found_error": "not_found",
    "request_too_large": "invalid",
    "rate_limit_error": "rate_limit",
    "timeout_error": "timeout",
    "api_error": "server",
    "overloaded_error": "overloaded",
    "memory_precondition_failed_error": "invalid",
    "memory_path_conflict_error": "invalid",
    "conflict_error": "server",
}
"""Types of an ``error`` event inside a stream, whose HTTP status says only that the stream began well."""

_MENDS: dict[ModelErrorKind, str] = {
    "auth": "check ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN",
    "billing": "check the account's credit and limits",
    "connection": "check the network, the proxy and ANTHROPIC_BASE_URL",
    "not_found": "check the model's name and ANTHROPIC_BASE_URL",
}
_TOO_LONG = re.compile(
    r"prompt is too long|exceeds? (the )?context (limit|window)|maximum context length|context_length_exceeded", re.I
)
_TOO_LARGE_STATUS = 413
_DETAIL_CHARACTERS = 400


@dataclass(frozen=True)
class Place:
    """Where the request went. ``url`` is without credentials, ``secret`` is what no message may show."""

    url: str
    model: str
    secret: str

    def hide(self, text: str) -> str:
        return text.replace(self.secret, "[key]") if self.secret else text


def kind_of(error: BaseException) -> ModelErrorKind | None:
    """The kind of an error of the SDK or its transport; None for any other, which is a bug."""
    if getattr(error, "status_code", None) == 200:
        return EVENT_KINDS.get(str(getattr(error, "type", None)), "server")
    names = [base.__name__ for base in type(error).__mro__]
    kinds = {**_FALLBACKS, **KINDS}
    return next((kinds[name] for name in names if name in kinds), None)


def to_model_error(error: BaseException, place: Place, now: float) -> ModelError | None:
    """The error for the person, or None when it is a bug and not a failed request.

    ``now``, in seconds since the epoch, is what a ``retry-after`` date is counted from.
    """
    kind = kind_of(error)
    if kind is None:
        return None
    status = getattr(error, "status_code", None)
    detail = place.hide(_detail(error))
    if kind == "invalid" and (status == _TOO_LARGE_STATUS or _TOO_LONG.search(detail)):
        return PromptTooLong(f"{_answered(place, status)}: {detail}", status=status)
    where = f"{place.url}: {_what(kind)}" if status is None else _answered(place, status)
    mend = f"; {_MENDS[kind]}" if kind in _MENDS else ""
    response = getattr(error, "response", None)
    asked = retry_after_seconds(response.headers, now) if response is not None else None
    return ModelError(f"{where}: {detail}{mend}", kind=kind, status=status, retry_after_seconds=asked)


def _answered(place: Place, status: int | None) -> str:
    how = "broke off its answer" if status == 200 else f"answered {status}"
    return f"{place.url} {how} for model {place.model}"


def _what(kind: ModelErrorKind) -> str:
    return {
        "connection": "no connection",
        "cut": "the connection broke before the reply was complete",
        "timeout": "no sign of life in time",
    }.get(kind, "the request could not be made")


def _detail(error: BaseException) -> str:
    """The server's own sentence, or the lowest-level cause, in one short line."""
    body = getattr(error, "body", None)
    text = getattr(error, "api_message", None) or (body if isinstance(body, str) else None)
    if text is None and body is None:
        while error.__cause__ is not None:
            error = error.__cause__
        text = str(error)
    line = " ".join((text or str(body)).split()) or type(error).__name__
    return line if len(line) <= _DETAIL_CHARACTERS else line[:_DETAIL_CHARACTERS] + "…"
