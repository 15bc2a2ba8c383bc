"""What a provider's refusal means."""

from email.utils import formatdate

import pytest

from xclaw.contracts.errors import ContextTooLong, ModelError, ModelRejected, ModelUnavailable
from xclaw.models.failures import FailureReader, retry_after_s

NOW = 1_800_000_000.0
READER = FailureReader("openai:x", ["sk-secret-key"], max_wait_s=60.0)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2.0),
        ("2.5", 2.5),
        (" 3 ", 3.0),
        ("-5", 0.0),
        ("999999", 999_999.0),
        ("soon", None),
        ("", None),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        ("9" * 400, None),
        ("Wed, 99 Foo 2026 99:99:99 GMT", None),
        (formatdate(NOW + 3, usegmt=True), 3.0),
        (formatdate(NOW - 300, usegmt=True), 0.0),
    ],
)
def test_retry_after_is_read_in_every_form(value: str, seconds: float | None) -> None:
    """V01, V02."""
    assert retry_after_s({"Retry-After": value}, NOW) == seconds


def test_a_date_is_measured_by_the_providers_own_clock() -> None:
    """V02: ours may be an hour off."""
    headers = {"Retry-After": formatdate(NOW + 3, usegmt=True), "Date": formatdate(NOW, usegmt=True)}
    assert retry_after_s(headers, NOW + 3600) == 3.0


def test_milliseconds_are_more_exact() -> None:
    assert retry_after_s({"retry-after-ms": "1500", "Retry-After": "2"}, NOW) == 1.5


def test_an_absurd_wait_is_capped() -> None:
    """V02."""
    error = READER.from_response(429, {"Retry-After": "999999"}, b"", NOW)
    assert isinstance(error, ModelUnavailable)
    assert error.retry_after_s == 60.0


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, ModelUnavailable) for status in (408, 425, 429, 498, 500, 502, 503, 504, 529, 599)),
        *((status, ModelRejected) for status in (301, 302, 307, 400, 401, 402, 403, 404, 405, 409, 422, 451)),
        (413, ContextTooLong),
        (204, ModelUnavailable),
    ],
)
def test_statuses_have_their_classes(status: int, kind: type[ModelError]) -> None:
    """V04."""
    error = READER.from_response(status, {}, b'{"error": {"message": "no"}}', NOW)
    assert type(error) is kind
    assert error.status == status
    assert str(status) in str(error)


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "the request exceeds the available context size, try increasing it",
        "request (9000 tokens) exceeds the available context size (4096 tokens)",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Your request exceeded model token limit: 8192",
        "The input token count (40000) exceeds the maximum number of tokens allowed (32768).",
        "Range of input length should be [1, 30720]",
        "Please reduce the length of the messages or completion.",
        "Input is too long for requested model.",
        "This endpoint's maximum context length is 4096 tokens",
        "exceed_context_size_error",
        "context_length_exceeded",
    ],
)
def test_a_request_that_does_not_fit_is_known_in_many_wordings(message: str) -> None:
    """V04."""
    body = b'{"error": {"message": "%s"}}' % message.encode()
    assert type(READER.from_response(400, {}, body, NOW)) is ContextTooLong


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens"),
        (401, "maximum context length"),
        (404, "model 'context-window-9b' not found"),
        (400, "tool name is too long"),
    ],
)
def test_other_refusals_are_not_taken_for_it(status: int, message: str) -> None:
    body = b'{"error": {"message": "%s"}}' % message.encode()
    assert type(READER.from_response(status, {}, body, NOW)) is ModelRejected


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b'{"error": {"message": "quota for key X"}}', "quota for key X"),
        (b'{"error": "plain words"}', "plain words"),
        (b'{"detail": [{"msg": "field required"}]}', "field required"),
        (b'{"message": "from a gateway"}', "from a gateway"),
        (b'[{"error": {"message": "in a list"}}]', "in a list"),
        (b'{"error": {"message": "failed", "metadata": {"raw": "upstream words"}}}', "upstream words"),
        (b"<html><script>x()</script><b>Bad</b> gateway</html>", "Bad gateway"),
        (b"plain text", "plain text"),
        (b"\xff\xfe\x00", "429"),
        (b"", "no message"),
        (b"null", "null"),
        (b"[" * 10_000, "429"),
    ],
)
def test_the_providers_own_words_are_shown(body: bytes, shown: str) -> None:
    """V02."""
    assert shown in str(READER.from_response(429, {}, body, NOW))


def test_text_is_bounded_redacted_and_without_control_characters() -> None:
    text = str(READER.from_response(400, {}, b"\x1b[31m sk-secret-key " + b"x" * 100_000, NOW))
    assert "sk-secret-key" not in text
    assert "\x1b" not in text
    assert len(text) < 2_100


def test_a_key_across_the_bound_is_not_shown_in_part() -> None:
    text = str(READER.from_response(400, {}, b"x" * 1_985 + b"sk-secret-key", NOW))
    assert "sk-" not in text
