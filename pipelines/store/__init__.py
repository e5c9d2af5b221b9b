"""Keeps runs and saved model configurations: SQLite in a file by default, PostgreSQL by URL."""

from pipelines.errors import StorageError
from pipelines.store.database import DEFAULT_URL, database_url, file_url
from pipelines.store.filters import RunFilter
from pipelines.store.runs import RunStore, RunSummary, Status
from pipelines.store.tables import ModelStore, is_owner, new_owner, new_run_id

__all__ = [
    "DEFAULT_URL",
    "ModelStore",
    "RunFilter",
    "RunStore",
    "RunSummary",
    "Status",
    "StorageError",
    "database_url",
    "file_url",
    "is_owner",
    "new_owner",
    "new_run_id",
]
