"""Evidence from the web: search services by name."""

from __future__ import annotations

from pipelines.errors import failure
from pipelines.retrieval.web.base import WebSearch
from pipelines.retrieval.web.providers import DuckDuckGoSearch, SerperSearch, WikipediaSearch

__all__ = ["WEB_SEARCHES", "WebSearch", "build_web_search", "needs_key"]

WEB_SEARCHES: dict[str, type[WebSearch]] = {
    search.id: search for search in (SerperSearch, DuckDuckGoSearch, WikipediaSearch)
}
"""The services that can be searched, by name."""


def build_web_search(
    name: str, *, key: str | None = None, base_url: str | None = None
) -> WebSearch:
    """The search called `name`; a key it does not need is left unused.

    Raises NotFoundError for a name that is not in `WEB_SEARCHES`, MissingKeyError where a key is
    needed and AuthenticationError where it cannot be one, InvalidInputError for a bad address.
    """
    return _kind(name)(key=key, base_url=base_url)


def needs_key(name: str) -> bool:
    """Whether the search called `name` needs a key; raises NotFoundError for an unknown one."""
    return _kind(name).needs_key


def _kind(name: str) -> type[WebSearch]:
    if name not in WEB_SEARCHES:
        raise failure("search.no_service", name=name, names=", ".join(WEB_SEARCHES))
    return WEB_SEARCHES[name]
