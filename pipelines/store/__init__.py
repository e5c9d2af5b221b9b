"""Keeps runs and saved model configurations: SQLite in a file by default, PostgreSQL by URL."""

from pipelines.store.engine import DEFAULT_URL, StorageError
from pipelines.store.ids import new_owner, new_run_id
from pipelines.store.models import ModelStore
from pipelines.store.runs import RunStore
from pipelines.store.summary import RunSummary, Status

__all__ = [
    "DEFAULT_URL",
    "ModelStore",
    "RunStore",
    "RunSummary",
    "Status",
    "StorageError",
    "new_owner",
    "new_run_id",
]
