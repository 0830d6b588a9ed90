"""Secrets are masked, ordinary text is not."""

from __future__ import annotations

import base64
import hashlib
import os
import random
import time
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyclaw.state.redaction import MARK, MaskedStream, Masker, holds_mask, mask

LETTERS = "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW0xY"
"""32 characters that look random."""

KEY_BODY = "\n".join(LETTERS * 2 for _ in range(4)) + "\nQk9z=="
KEY_BLOCK = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_BODY}\n-----END RSA PRIVATE KEY-----"

SECRETS = [
    ("anthropic-key", "sk-ant-api03-" + LETTERS),
    ("anthropic-key", "sk-ant-FAKEFAKEFAKEFAKE"),
    ("openai-key", "sk-proj-" + LETTERS),
    ("github-token", "ghp_" + LETTERS + "1234"),
    ("github-token", "github_pat_" + LETTERS + "_" + LETTERS),
    ("gitlab-token", "glpat-" + LETTERS[:20]),
    ("aws-key-id", "AKIA" + "Q3EGRTZ7HWDN5XV2"),
    ("slack-token", "xoxb-" + "123456789012-abcdefGHIJKL"),
    ("google-key", "AIza" + LETTERS + "abc"),
    ("npm-token", "npm_" + LETTERS + "wxyz"),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc" + LETTERS),
    ("stripe-key", "sk_live_" + LETTERS[:24]),
    ("hugging-face-token", "hf_" + LETTERS),
    ("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"),
    ("private-key", KEY_BLOCK),
]


@pytest.mark.parametrize(("kind", "secret"), SECRETS)
@pytest.mark.parametrize("frame", ["{}", "key: {}\n", 'print("{}")', "x={};", "12:  {} # note"])
def test_every_key_family_is_masked_with_its_kind_and_nothing_beside_it(kind, secret, frame):
    assert mask(frame.format(secret)) == frame.format(f"[masked:{kind}]")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("DB_PASSWORD=correcthorsebattery", "correcthorsebattery"),
        ("DB_PASSWORD=P@$$(w0rd),1;x&y", "P@$$(w0rd),1;x&y"),
        ("GET /?token=q7w8e9r0t1y2&page=2", "q7w8e9r0t1y2"),
        ("export SECRET_KEY_BASE='9f8a7b6c5d4e3f2a'", "9f8a7b6c5d4e3f2a"),
        ("password: s3cr3t-Pa55w0rd", "s3cr3t-Pa55w0rd"),
        ('{"client_secret": "aX9-kq27Lm_3zP"}', "aX9-kq27Lm_3zP"),
        (r"{\"api_key\": \"aX9-kq27Lm_3zP\"}", "aX9-kq27Lm_3zP"),
        ('login(user="bob", password="Tr0ub4dor&3")', "Tr0ub4dor&3"),
        ('token: str = "q7w8e9r0t1y2"', "q7w8e9r0t1y2"),
        ("mysql --password Tr0ub4dor&3x db", "Tr0ub4dor&3x"),
        (
            "aws_secret_access_key = wJalrXUtnFEMIK7MDENGbPxRfiCYzQ0pLmVhTr12",
            "wJalrXUtnFEMIK7MDENGbPxRfiCYzQ0pLmVhTr12",
        ),
        ("postgres://bob:hunter2@db.local/app", "hunter2"),
        ("redis://:p@ss-w0rd@cache:6379", "p@ss-w0rd"),
        ("Authorization: Basic Ym9iOmh1bnRlcjI=", "Ym9iOmh1bnRlcjI="),
        ("authorization: Bearer q7w8e9r0t1y2u3", "q7w8e9r0t1y2u3"),
        ("Authorization: token q7w8e9r0t1y2u3", "q7w8e9r0t1y2u3"),
        ("x-api-key: q7w8e9r0t1y2u3", "q7w8e9r0t1y2u3"),
    ],
)
def test_only_the_value_of_an_assignment_header_or_url_is_masked(text, secret):
    before, _, after = text.partition(secret)
    masked = mask(text)
    assert masked.startswith(before + "[masked:") and masked.endswith("]" + after)
    assert secret not in masked


@pytest.mark.parametrize(
    "text",
    [
        "token = get_token()",
        "token = tokens[index]",
        "password = self.password1or2",
        "password = os.environ['DB_PASSWORD']",
        'password = "password"',
        "API_KEY=your-api-key-here",
        "API_KEY=${API_KEY}",
        "TOKEN=$(cat token.txt)",
        "secret: ${{ secrets.DEPLOY_KEY_2 }}",
        "password_file: /run/secrets/db1",
        'if token == "skip-test-1":',
        "skip-test-1 task-runner-2024-long-name-of-a-test",
        "sk-toggleable__label-arrow-and-more-of-it",
        "max_tokens: 12345678, input_tokens=12345678",
        '"nextPageToken": "CAUQ7aZ8kLm2"',
        "the token 3f2a9b1c4d5e was read",
        "curl http://user:password@host/ and http://user:$PASS@host",
        "Basic authentication, Bearer authentication",
        "ssh://git@host:22/repo and http://[::1]:8080/@me",
        'BEGIN = "-----BEGIN PRIVATE KEY-----"; END = "-----END PRIVATE KEY-----"',
        "-----BEGIN CERTIFICATE-----\n" + KEY_BODY + "\n-----END CERTIFICATE-----",
        "sk-ant-your-key-here and sk-ant-xxxxxxxxxxxxxxxx",
    ],
)
def test_placeholders_names_and_code_stay(text):
    assert mask(text) is text


def test_hashes_uuids_and_base64_stay():
    rng = random.Random(7)
    lines = []
    for _ in range(2_000):
        data = rng.randbytes(rng.choice((16, 20, 32, 300)))
        lines += [data.hex(), hashlib.sha1(data).hexdigest(), str(uuid.UUID(bytes=data[:16]))]
        lines.append(base64.b64encode(data).decode())
    text = "\n".join(lines)
    assert mask(text) is text


def standard_library() -> list[str]:
    paths = sorted(Path(os.__file__).parent.glob("*.py")) + sorted(Path(os.__file__).parent.glob("*/*.py"))[:400]
    return [path.read_text(errors="replace") for path in paths]


def test_the_standard_library_holds_no_secrets():
    hits = [MARK.findall(mask(text)) for text in standard_library() if "[masked:" not in text]
    assert sum(map(len, hits)) <= 1
    assert len(hits) > 100


def test_ordinary_text_is_masked_fast():
    text = "\n".join(standard_library())[:4_000_000]
    fastest = min(_seconds_to_mask(text) for _ in range(3))
    assert len(text) / 1e6 / fastest > 4  # 30 on a quiet machine


def test_one_long_line_takes_no_longer_than_many_short_ones():
    text = "password" * 50_000 + "-----BEGIN PRIVATE KEY-----" * 2_000 + "://a:" * 50_000
    assert _seconds_to_mask(text) < 5


def _seconds_to_mask(text: str) -> float:
    start = time.perf_counter()
    mask(text)
    return time.perf_counter() - start


def test_a_private_key_cut_off_at_the_end_is_masked_to_its_last_character():
    masked = mask("cat key\n" + KEY_BLOCK[:230])
    assert masked == "cat key\n[masked:private-key]"


def test_a_private_key_on_one_line_or_with_line_numbers_is_masked():
    for text in (
        KEY_BLOCK.replace("\n", "\\n"),
        "\n".join(f"{n}\t{line}" for n, line in enumerate(KEY_BLOCK.split("\n"))),
    ):
        assert LETTERS not in mask(text)
        assert mask(text).endswith("[masked:private-key]")


def test_values_of_secret_variables_are_masked_wherever_they_stand():
    masker = Masker({"DEPLOY_TOKEN": "correcthorsebattery", "ACME_KEY": "correcthorse"})
    assert masker.mask("a=correcthorsebattery;correcthorse") == "a=[masked:deploy-token];[masked:acme-key]"


def test_values_that_are_no_secrets_or_too_short_stay():
    environment = {
        "PATH": "/usr/local/bin",
        "SSH_AUTH": "/tmp/agent.sock",
        "DB_PASSWORD": "postgres",
        "API_KEY": "x",
        "TOKEN": "changeme",
        "HOME_TOWN": "Montevideo1",
    }
    text = " ".join(environment.values())
    assert Masker(environment).mask(text) is text


def test_a_value_that_is_a_word_of_a_mark_is_masked_once():
    masker = Masker({"DEPLOY_TOKEN": "deploy-token-1"})
    assert masker.mask("deploy-token-1 [masked:deploy-token-1]") == "[masked:deploy-token] [masked:deploy-token-1]"


def test_letters_whose_lower_case_is_longer_move_no_mask():
    assert mask(f"İİİ sk-ant-{LETTERS} İ") == "İİİ [masked:anthropic-key] İ"


FRAGMENTS = [secret for _, secret in SECRETS] + [
    "password=", "token: ", '"', "'", "-----BEGIN ", "-----END ", "://a:", "@h", "[masked:jwt]", "[masked:", "]",
    "Bearer ", "\n", " ", "=", LETTERS, "a1b2c3d4e5", "correcthorsebattery",
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=5), max_size=12).map("".join))
def test_masking_a_masked_text_changes_nothing(text):
    masker = Masker({"DEPLOY_TOKEN": "correcthorsebattery"})
    once = masker.mask(text)
    assert masker.mask(once) == once


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(SECRETS), st.data())
def test_a_secret_split_over_pieces_of_a_stream_is_masked(secret, data):
    text = f"one\nkey {secret[1]}\ntwo"
    cut = data.draw(st.integers(0, len(text)))
    second = data.draw(st.integers(cut, len(text)))
    stream = MaskedStream(mask)
    out = [stream.feed(part) for part in (text[:cut], text[cut:second], text[second:])] + [stream.close()]
    assert "".join(out) == f"one\nkey [masked:{secret[0]}]\ntwo"


def test_a_stream_gives_each_line_at_once_and_holds_back_only_a_key_block():
    stream = MaskedStream(mask)
    assert stream.feed("first\nsec") == "first\n"
    assert stream.feed("ond\n") == "second\n"
    assert stream.feed("see -----BEGIN PRIVATE KEY----- in the docs\n") == ""
    assert stream.feed("and then some prose\n").startswith("see -----BEGIN PRIVATE KEY-----")
    assert stream.feed("x" * 100_000) == "x" * 100_000
    assert stream.close() == ""


def test_holds_mask_knows_marks_from_talk_about_them():
    assert holds_mask("key = [masked:jwt]")
    assert not holds_mask("a mark is [masked:KIND], [masked: or masked:x]")
