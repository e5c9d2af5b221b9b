"""Models behind any server that speaks the OpenAI chat protocol, or nearly so.

The client of OpenAI sends the requests; what comes back is read here as it is, because servers add
to the protocol's forms, leave parts of them out, and answer with a stream where none was asked for.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import parse_qsl, urlsplit

import httpx2

from pipelines.base import Usage
from pipelines.errors import failure
from pipelines.models.base import OPENAI, GenerationRequest, Overrides
from pipelines.models.chunks import AnswerReader, answers_in, merged, usage_in
from pipelines.models.dialects import RefusalError
from pipelines.models.entries import from_vocabulary
from pipelines.models.hosted import (
    CONNECT_SECONDS,
    LONGEST_SECONDS,
    HostedModel,
    Limiter,
    prefix_of,
)
from pipelines.models.replies import ReplyPart
from pipelines.remote import HEADERS, OPENAI_URL, PublicTransport, bounded, read_address
from pipelines.text.thinking import NO_MARKS, Marks, declared_marks

if TYPE_CHECKING:
    # Its hundreds of types take most of a second, which commands without such a model do not wait.
    import openai

_NAMED = ("model", "stream")
_EXAMPLE = "https://example.com/v1"
_ASIDE = 5.0
"""Seconds that a question beside the texts may take, such as that for the chat template."""

# A parameter of an address with such a name would show a secret wherever the address is shown.
_SECRET = re.compile(r"key|token|secret|sig|pass|auth|code|credential", re.I)


class OpenAIModel(HostedModel["openai.AsyncOpenAI"]):
    """A model by its id at an OpenAI-compatible address; one call is one attempt.

    `known` says what the server offers; the usual is: 20 alternatives, not known to continue a
    begun answer, constrained output, English and Chinese. Several texts are asked for in one
    request; where the server gives fewer, each is asked for by itself.

    `llama_cpp` says that the server is llama.cpp on this machine. It continues a final assistant
    message without being told, and every text is a request of its own. Unwatched calls are streamed
    too: a server notices sooner that nobody reads a stream any more, so cancelling ends its work at
    once. Reproducible requests do without its cache: a prompt found there is computed in other
    batches, with other rounding.

    `public_only` keeps requests to addresses on the public internet: for servers that visitors
    named, who have no business in the network around this machine.

    Sampling beyond temperature (top-p and the like) is left to the server's defaults. The key, the
    address and the organisation come from the arguments alone, never from the environment; its
    proxy is used except for an address on this machine.

    llama.cpp merges the tokens of a character it wrote in several into one and reports the
    probability of the last of them, which is too high for such a character.
    """

    _usual = OPENAI
    _protocol = "an OpenAI-compatible server"
    _ending = "/v1"

    def __init__(
        self,
        name: str,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        provider: str | None = None,
        timeout: float = 120.0,
        longest: float = LONGEST_SECONDS,
        limiter: Limiter | None = None,
        llama_cpp: bool = False,
        public_only: bool = False,
        **known: Unpack[Overrides],
    ) -> None:
        url, self._query = _without_query(base_url or OPENAI_URL)
        address = read_address(url, endpoint="/chat/completions", example=_EXAMPLE)
        super().__init__(
            name,
            model,
            address,
            api_key,
            known=known,
            timeout=timeout,
            longest=longest,
            provider=provider,
            limiter=limiter,
        )
        self._llama_cpp = self._always_stream = llama_cpp
        if llama_cpp:
            self._max_texts = self._max_streamed = 1
        self._public_only = public_only

    def _fields(self, request: GenerationRequest, n: int, index: int) -> dict[str, Any]:
        body = super()._fields(request, n, index) | {"stream_options": {"include_usage": True}}
        if prefix_of(request) and not self._llama_cpp:
            # vLLM and SGLang want to be told. A server that refuses this is asked without it.
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        if request.reproducible and self._llama_cpp:
            body["cache_prompt"] = False
        return body

    async def _whole(self, fields: dict[str, Any]) -> tuple[list[ReplyPart], Usage]:
        fields.pop("stream_options", None)
        usage: Usage | None = None
        pieces: list[ReplyPart] = []
        reader = AnswerReader(fields.get("n") or 1)
        async with aclosing(self._answers(fields, reader)) as answers:
            async for parts, counted in answers:
                pieces += parts
                usage = counted or usage
        if reader.is_broken_off:
            raise ValueError("A stream that nobody asked for was broken off.")
        if not any(one.content or one.thought or one.finish_reason for one in pieces):
            return [], Usage()
        return merged(pieces), usage or Usage()

    async def _stream(
        self, fields: dict[str, Any]
    ) -> AsyncGenerator[tuple[list[ReplyPart], Usage | None], None]:
        reader = AnswerReader(fields.get("n") or 1)
        async with aclosing(self._answers(fields | {"stream": True}, reader)) as answers:
            async for answer in answers:
                yield answer

    async def _answers(
        self, fields: Mapping[str, Any], reader: AnswerReader
    ) -> AsyncGenerator[tuple[list[ReplyPart], Usage | None], None]:
        """Yield what the server says, in as many pieces as it likes, whatever was asked for."""
        # Servers know fields that the client has no name for: all but these are given apart. So are
        # the turns, which the client would walk through field by field: a millisecond of each call.
        named: Any = {name: fields[name] for name in _NAMED if name in fields} | {"messages": ()}
        rest = {name: value for name, value in fields.items() if name not in _NAMED}
        create = self._client().chat.completions.with_streaming_response.create
        async with create(**named, extra_body=rest, extra_headers=self._headers()) as response:
            async with aclosing(answers_in(response.iter_bytes())) as answers:
                async for answer in answers:
                    yield reader.parts(answer), usage_in(answer)
            yield reader.closing(), None

    def _headers(self) -> dict[str, Any]:
        """Return how the key is given; without one the client insists on being told that none is
        meant.
        """
        import openai

        if self._key and "api-version" in self._query:
            # Azure takes its own keys under another name.
            return {"Authorization": openai.omit, "api-key": self._key}
        return {} if self._key else {"Authorization": openai.omit}

    async def _declared_marks(self) -> Marks:
        """Ask llama.cpp for its chat template, or vLLM and its kin how they write a prompt."""
        root = self._address.url.removesuffix("/v1")
        turns = [{"role": "user", "content": "?"}]
        known = await self._aside(f"{root}/props")
        if isinstance(template := known.get("chat_template"), str):
            written = await self._aside(f"{root}/apply-template", {"messages": turns})
            prompt = written.get("prompt")
            return declared_marks(template, prompt if isinstance(prompt, str) else "")
        asked = {"model": self._model, "messages": turns, "add_generation_prompt": True}
        cut = await self._aside(f"{root}/tokenize", {**asked, "return_token_strs": True})
        if isinstance(names := cut.get("token_strs"), list):
            spelled = [from_vocabulary(str(name).encode("utf-8", "replace")) for name in names]
            return declared_marks("", b"".join(spelled).decode("utf-8", "replace"))
        if isinstance(tokens := cut.get("tokens"), list) and tokens:
            known = {"model": self._model, "tokens": tokens}
            written = await self._aside(f"{root}/detokenize", known)
            if isinstance(prompt := written.get("prompt"), str):
                return declared_marks("", prompt)
        return NO_MARKS

    async def _aside(self, url: str, body: object = None) -> Mapping[str, Any]:
        """Return what a server says at another of its addresses; nothing where it has none."""
        client = self._client()
        options: Any = {"headers": self._headers(), "timeout": _ASIDE}
        try:
            # The client's own limit is for each read: a server that drips keeps within it for ever.
            async with asyncio.timeout(_ASIDE):
                if body is None:
                    said = await client.get(url, cast_to=object, options=options)
                else:
                    said = await client.post(url, cast_to=object, body=body, options=options)
        except (*self._errors.client_errors, TimeoutError, ValueError, RecursionError):
            return {}
        return said if isinstance(said, Mapping) else {}

    @staticmethod
    def _client_errors() -> tuple[type[Exception], ...]:
        import openai

        return openai.OpenAIError, httpx2.HTTPError

    @staticmethod
    def _refusal(error: Exception) -> RefusalError | None:
        import openai

        if isinstance(error, openai.APIStatusError):
            # The client keeps what is under "error" alone; beside a word there the rest says why.
            body: object = error.body
            if isinstance(body, str):
                body = _json_in(error.response) or body
            return RefusalError(error.status_code, error.code, body, error.response.headers)
        if isinstance(error, openai.APIError) and not isinstance(error, openai.APIConnectionError):
            # It came inside a stream that began well.
            code = error.code or ""
            status = int(code) if code.isdigit() else 500
            return RefusalError(status, code, error.body or error.message)
        return None

    def _new_client(self) -> openai.AsyncOpenAI:
        import openai

        timeout = httpx2.Timeout(self._timeout, connect=CONNECT_SECONDS)
        client = openai.AsyncOpenAI(
            api_key=self._key or "",
            admin_api_key="",
            webhook_secret="",
            base_url=self._address.url,
            timeout=timeout,
            max_retries=0,
            default_query=self._query,
            http_client=self._connections(timeout),
        )
        # The client fills these from environment variables even where arguments are given.
        client.organization = client.project = None
        client._custom_headers = {}
        return client

    async def _close(self, client: openai.AsyncOpenAI) -> None:
        await client.close()

    def _connections(self, timeout: httpx2.Timeout) -> httpx2.AsyncClient:
        hooks = {"response": [bounded]}
        # A local server may keep a worker per open connection, and opening one costs nothing there.
        kept = 0 if self._address.on_this_machine else 20
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=kept)
        if self._public_only:
            # Past the proxy of the environment: it stands inside.
            inner = httpx2.AsyncHTTPTransport(
                verify=self._address.encrypted, limits=limits, trust_env=False
            )
            return httpx2.AsyncClient(
                timeout=timeout,
                headers=HEADERS,
                transport=PublicTransport(inner),
                event_hooks=hooks,
            )
        return httpx2.AsyncClient(
            timeout=timeout,
            limits=limits,
            headers=HEADERS,
            event_hooks=hooks,
            trust_env=not self._address.on_this_machine,
            verify=self._address.encrypted,
        )


def _json_in(response: httpx2.Response) -> object:
    try:
        return response.json()
    except (ValueError, RecursionError, httpx2.StreamError):
        return None


def _without_query(url: str) -> tuple[str, dict[str, str]]:
    """Return an address without its parameters, and these: some gateways want the version of
    their protocol there.

    Raises InvalidInputError where one of them looks like a secret: addresses are shown.
    """
    address, mark, query = url.strip().partition("?")
    if not mark or "#" in query:
        return url, {}
    found = dict(parse_qsl(urlsplit(url.strip()).query, keep_blank_values=True))
    if not found or any(_SECRET.search(name) or not value for name, value in found.items()):
        raise failure("address.secret_in_query", example=_EXAMPLE)
    return address, found
