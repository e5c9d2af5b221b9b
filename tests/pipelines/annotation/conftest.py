"""An empty store, as for the tests of the store."""

from tests.pipelines.store.conftest import new_postgresql, postgresql_server, store, url

__all__ = ["new_postgresql", "postgresql_server", "store", "url"]
