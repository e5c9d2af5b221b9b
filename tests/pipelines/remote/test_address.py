"""Addresses and keys as people paste them."""

from __future__ import annotations

import pytest

from pipelines.errors import AuthenticationError, InvalidInputError
from pipelines.remote import Address, read_address, usable_key


def read(url: str) -> Address:
    return read_address(url, endpoint="/chat", example="https://example.com/v1")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.example/v1", Address("https://a.example/v1", "a.example", False)),
        (" https://a.example/v1/chat/ ", Address("https://a.example/v1", "a.example", False)),
        ("http://localhost:8000", Address("http://localhost:8000", "localhost:8000", True)),
        ("http://[::1]:80/v1", Address("http://[::1]:80/v1", "::1:80", True)),
        ("http://my_host.:80", Address("http://my_host.:80", "my_host.:80", False)),
        ("https://例子.中国", Address("https://例子.中国", "例子.中国", False)),
    ],
)
def test_addresses(url: str, expected: Address):
    assert read(url) == expected


def test_a_placeholder_stands_in_an_address():
    url = "https://{workspace}.example.com/v1"
    found = read_address(url, example=url, placeholder="{workspace}")
    assert found == Address(url, "{workspace}.example.com", False)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://host/v1",
        "host/v1",
        "http://",
        "http://user:pw@host/v1",
        "http://:secret@host/v1",
        "http://@host/v1",
        "http://host/v1#part",
        "http://a b/v1",
        "http://a..b/v1",
        "http://\x7f/v1",
        "http://h:70000/v1",
        "http://h:x/v1",
        "http://h?k",
        "https://{workspace}.example.com/v1",
    ],
)
def test_addresses_that_are_none(url: str):
    with pytest.raises(InvalidInputError, match=r"like https://example\.com/v1"):
        read(url)


@pytest.mark.parametrize(
    ("key", "used"), [(None, None), ("", None), (" \n", None), (" k-1 ", "k-1")]
)
def test_keys(key: str | None, used: str | None):
    assert usable_key(key, "p") == used


@pytest.mark.parametrize("key", ["sk-é", "sk a", "sk\nb", "“sk”"])
def test_keys_that_are_none(key: str):
    with pytest.raises(AuthenticationError) as caught:
        usable_key(key, "p")
    assert key not in str(caught.value)
