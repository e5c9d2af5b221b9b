"""The hub as downloads meet it: what it has of a model, and what its failures mean."""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from urllib.parse import urlsplit

from pipelines.error_words import entries, phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.models.catalogue import Download, DownloadManifest, ModelFile
from pipelines.models.transformers.model import BESIDE_WEIGHTS, SECOND_COPIES, hub_failure

TIMEOUT = 20.0
_SECONDS = 5.0
"""How long an answer may take, and one that says only whether there is a file."""

_logger = logging.getLogger(__name__)


def ask_hub(entry: Download) -> DownloadManifest:
    """Return what the hub has under the entry's revision; raises what asking it raises."""
    from huggingface_hub import HfApi
    from huggingface_hub.utils import filter_repo_objects

    api = HfApi(endpoint=endpoint(), library_name="veriscope")
    found = api.model_info(
        entry.repository, revision=entry.revision, files_metadata=True, timeout=TIMEOUT
    )
    # A name with a folder in it would lead out of the model's own folder.
    listed = {one.rfilename: one for one in found.siblings or () if not {*one.rfilename} & {*"/\\"}}
    patterns = [entry.file] if entry.file else ["*.safetensors", *BESIDE_WEIGHTS]
    unwanted: list[str] = [] if entry.file else [*SECOND_COPIES]
    names = list(filter_repo_objects(listed, allow_patterns=patterns, ignore_patterns=unwanted))
    if not names or not found.sha:
        raise _failed("not_on_the_hub", entry)
    files = tuple(
        ModelFile(
            name=name,
            size=one.size or 0,
            sha256=one.lfs.sha256 if one.lfs else "",
            blob_id=one.blob_id or "",
        )
        for name, one in ((name, listed[name]) for name in names)
    )
    if entry.sha256 and files[0].sha256 != entry.sha256:
        raise failure("downloads.changed", host(), label=entry.name)
    return DownloadManifest(revision=entry.revision, commit=found.sha, files=files)


def hub_has(entry: Download) -> bool:
    """Return whether the hub gives this very file, which is known within seconds."""
    if not entry.repository:
        return False
    answers: list[bool] = []

    def ask() -> None:
        with suppress(Exception):
            answers.append(_gives(entry))

    # In a thread: to look up the name of the hub has no time limit of its own.
    asking = threading.Thread(target=ask, name="veriscope-hub", daemon=True)
    asking.start()
    asking.join(_SECONDS)
    return answers == [True]


def _gives(entry: Download) -> bool:
    from huggingface_hub import get_session, hf_hub_url
    from huggingface_hub.utils import build_hf_headers

    url = hf_hub_url(entry.repository, entry.file, revision=entry.revision, endpoint=endpoint())
    headers = build_hf_headers(library_name="veriscope")
    answer = get_session().head(url, headers=headers, timeout=_SECONDS, follow_redirects=False)
    named = answer.headers.get("X-Linked-ETag", entry.sha256).strip('"')
    return answer.status_code < 400 and named == entry.sha256


def may_pass(error: Exception) -> bool:
    """Return whether the next attempt may succeed."""
    from huggingface_hub.errors import OfflineModeIsEnabled

    if isinstance(error, OfflineModeIsEnabled):
        return False
    found = hub_failure(error)
    return found is not None and found[0] in ("no_connection", "hub_failed", "slow_down")


def explained(error: Exception, entry: Download) -> VeriscopeError:
    """Return what ended the download of `entry`, as one of `pipelines.errors`."""
    found = hub_failure(error)
    if found is not None and found[0] == "disk_full":
        return failure("downloads.filled", None, label=entry.name)
    if found is not None:
        return _failed(found[0], entry, status=found[1])
    if isinstance(error, OSError):
        said = error.strerror or type(error).__name__
        return failure("downloads.unwritten", None, label=entry.name, said=said)
    _logger.error("The download of %s failed.", entry.name, exc_info=error)
    return failure("asking.unexpected")


def _failed(kind: str, entry: Download, status: int | None = None) -> VeriscopeError:
    group = "downloads" if f"downloads.{kind}" in entries() else "loading"
    facts = {"label": entry.name, "files": entry.file or phrase("detail.the_files"), "host": host()}
    return failure(f"{group}.{kind}", host(), status=status, **facts)


def endpoint() -> str | None:
    """Return the address of the hub that the environment names, read when it is needed."""
    return os.environ.get("HF_ENDPOINT") or None


def host() -> str:
    """Return the name of the hub's machine."""
    from huggingface_hub import constants

    return urlsplit(endpoint() or constants.ENDPOINT).netloc
