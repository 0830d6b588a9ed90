import pytest

from tinyclaw.errors import ModelError
from tinyclaw.model.connection import DEFAULT_BASE_URL, Credential, Endpoint, base_url_of


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("", DEFAULT_BASE_URL),
        ("  ", DEFAULT_BASE_URL),
        ("http://h:1", "http://h:1"),
        ("http://h:1/", "http://h:1"),
        ("http://h:1/v1", "http://h:1"),
        ("http://h:1/v1//", "http://h:1"),
        ("http://h:1/v1/messages", "http://h:1"),
        ("http://h:1/gw/anthropic", "http://h:1/gw/anthropic"),
        ("http://h:1/gw/anthropic/v1/", "http://h:1/gw/anthropic"),
        ("http://h:1/v12", "http://h:1/v12"),
    ],
)
def test_the_base_is_what_stands_before_v1(text, base):
    assert base_url_of(text) == base


@pytest.mark.parametrize("text", ["localhost:8080", "/v1", "ftp://h", "http://", "127.0.0.1", "http://[::1"])
def test_an_address_that_is_none_is_named(text):
    with pytest.raises(ModelError, match="ANTHROPIC_BASE_URL"):
        base_url_of(text)


def test_the_key_goes_before_the_token():
    both = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_AUTH_TOKEN": "token"}
    assert Endpoint.from_environment(both).credential == Credential("key")
    assert Endpoint.from_environment({**both, "ANTHROPIC_API_KEY": " "}).credential == Credential("token", True)


def test_without_a_key_one_line_says_which_variables_and_what_needs_none():
    with pytest.raises(ModelError) as caught:
        Endpoint.from_environment({})
    assert caught.value.kind == "auth"
    text = str(caught.value)
    assert all(word in text for word in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "tinyclaw demo"))
    assert "\n" not in text


@pytest.mark.parametrize("key", ["sk-ant\nsecret", "sk-ant…secret"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(key):
    with pytest.raises(ModelError, match="ANTHROPIC_API_KEY") as caught:
        Endpoint.from_environment({"ANTHROPIC_API_KEY": key})
    assert "secret" not in str(caught.value)


def test_a_line_break_around_the_key_does_no_harm():
    assert Endpoint.from_environment({"ANTHROPIC_API_KEY": "key\n"}).credential.secret == "key"


def test_neither_key_nor_password_is_shown():
    endpoint = Endpoint.from_environment(
        {"ANTHROPIC_API_KEY": "sk-secret", "ANTHROPIC_BASE_URL": "http://me:pass@h:1/gw/v1"}
    )
    assert "sk-secret" not in repr(endpoint)
    assert endpoint.url == "http://h:1/gw/v1/messages"
