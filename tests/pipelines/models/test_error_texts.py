"""Error texts of gateways and services in the place of an answer, and answers about errors."""

import pytest

from pipelines.models.error_texts import is_error_text

ERRORS = (
    "Error: upstream request timeout",
    "upstream request timeout",
    "502 Bad Gateway",
    "502: Bad gateway",
    '<!DOCTYPE html><html lang="en"><title>504</title></html>',
    "Rate limit exceeded",
    "Rate limit reached for requests. Please try again in 20s.",
    "Error 429: Too Many Requests",
    "429 Too Many Requests",
    "HTTP/1.1 503 Service Unavailable",
    "HTTP 503",
    "Error code: 500",
    "Service Temporarily Unavailable",
    "Service unavailable.",
    "504 Gateway Time-out",
    "Internal Server Error",
    "500 Internal Server Error",
    "no healthy upstream",
    "stream timeout",
    "Connection refused",
    "Error: connect ECONNREFUSED 127.0.0.1:8000",
    "ECONNRESET",
    "Request timed out.",
    "The request timed out. Please try again later.",
    "The server had an error while processing your request. Sorry about that!",
    "The model is currently overloaded with other requests.",
    "The server is busy, please try again later.",
    '{"error":{"message":"Rate limit exceeded","type":"rate_limit"}}',
    '{"error": "Internal Server Error", "status": 500}',
    '{"detail": "Internal Server Error"}',
    '{"message":"no healthy upstream","code":503}',
    "You exceeded your current quota, please check your plan and billing details.",
    "Invalid API key",
    "An error occurred while processing your request.",
    "Something went wrong. Please try again.",
    "context deadline exceeded",
    "[ERROR] timeout error",
    "ValueError: too many values to unpack",
    'Traceback (most recent call last): File "x.py"',
    "Error: 403 Forbidden",
    "404 Not Found",
    "Network error",
    "请求超时",
    "服务暂时不可用，请稍后再试。",
    "系统繁忙，请稍后重试",
    "服务器内部错误",
    "网络错误",
    "错误：网关超时",
    "请求过于频繁，请稍后再试",
    "error code: 1020",
    "CUDA out of memory",
    "Failed to fetch",
)
ANSWERS = (
    "The Bug That Caused the Error Was a Moth.",
    "The error was corrected in 1928.",
    "502",
    "1889",
    "Error bars show the standard deviation.",
    "An error in the calculation led to the loss of the probe.",
    "A timeout is a pause in a game.",
    "Gateway Arch is in St. Louis.",
    "The Gateway Arch",
    "The server had brought wine.",
    "Rate limits on roads were introduced in 1903.",
    "Never. True? No way.",
    "N/A",
    "yes",
    "The network failed in 2003.",
    "The connection between Darwin and Wallace was reset in 1858.",
    "The model is a copy of the ship.",
    "Its connection was closed in 1961.",
    "500 people",
    "404 metres",
    "In 500 BC.",
    "He failed to connect the two ideas in 1905.",
    "The exception is Venus.",
    "Exception: Venus, which rotates backwards.",
    "Service was unavailable to women until 1918.",
    "The request was refused by the king in 1492.",
    "The proxy war lasted from 1961 to 1963.",
    "系统由三部分组成。",
    "网络在1989年发明。",
    "服务器位于日内瓦。",
    "模型的错误率为百分之五。",
    "连接欧洲和亚洲。",
    "Something went wrong with the guidance computer, and Armstrong landed by hand.",
    "The operation failed because the heart stopped.",
    "The stream closed in winter.",
    "The call was aborted by Houston.",
)


@pytest.mark.parametrize("text", ERRORS)
def test_error_texts(text: str) -> None:
    assert is_error_text(text)
    assert is_error_text(f"\n{text} ")


@pytest.mark.parametrize("text", ANSWERS)
def test_answers_are_none(text: str) -> None:
    assert not is_error_text(text)


def test_where_errors_are_asked_about_the_text_of_one_is_an_answer() -> None:
    assert not is_error_text("502 Bad Gateway", "What does the HTTP status code 502 mean?")
    assert not is_error_text("Bad Gateway", "What does a gateway answer?")
    assert not is_error_text("<html></html>", "Write an empty HTML page.")
    assert is_error_text("502 Bad Gateway", "Who was Ada Lovelace?")
