"""What is imported before the first process is forked depends on the tests that were chosen."""

from __future__ import annotations

import pytest

from tests.kills.killing import PRELOADED


def pytest_collection_finish(session: pytest.Session) -> None:
    """What takes seconds to import: once, and only where it is going to be killed."""
    if any("kills_of_the_space" in item.name for item in session.items):
        PRELOADED.append("app.public.serving")
    if any("annotation" in item.name for item in session.items):
        PRELOADED.append("tests.kills.annotating")
