"""Data sets of the hub, read in a thread of their own, so that the page stays usable meanwhile."""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

from app.evaluated import NotYet
from pipelines.evaluation.datasets.files import DataTable
from pipelines.evaluation.datasets.hub import HubAddress, read_hub

_PATIENCE = 5.0
"""Seconds that a page waits before it says that a data set is being read."""

_KEPT = 2
"""Data sets that are kept; one can have 200,000 rows."""

_pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="fetching")
_works: OrderedDict[HubAddress, Future[DataTable]] = OrderedDict()
_lock = Lock()


def fetched(address: HubAddress) -> DataTable:
    """Return the rows of a data set of the hub, read once.

    Raises NotYet while it is being read for longer than a page can wait, and what `read_hub`
    raises; who asks again after an error tries again.
    """
    with _lock:
        work = _works.get(address)
        patience = _PATIENCE if work is None else 0.0
        if work is None:
            work = _works[address] = _pool.submit(read_hub, address)
        _works.move_to_end(address)
        done = [one for one, other in _works.items() if other.done()]
        for old in done[: max(0, len(_works) - _KEPT)]:
            del _works[old]
    try:
        return work.result(timeout=patience)
    except TimeoutError:
        if work.done():
            # The connection's own time was up, not ours.
            forget(address)
            raise
        raise NotYet(work) from None
    except Exception:
        forget(address)
        raise


def forget(address: HubAddress) -> None:
    """Read it anew the next time."""
    with _lock:
        _works.pop(address, None)
