"""The run a visitor is looking at: followed while it happens, read from the store afterwards."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from app.budget import planned
from app.engine import Watched, engine
from app.session import keys_for, owner
from pipelines.engine.asking import RunRequest
from pipelines.engine.budget import refuse_excess
from pipelines.errors import VeriscopeError
from pipelines.run.events import ModelCalled
from pipelines.run.spec import RunSpec

_WATCHED = "_watched"


def start(
    asked: RunRequest | RunSpec, *, anyway: bool = False, known: Iterable[ModelCalled] = ()
) -> None:
    """Start a run and look at it; raises what planning and starting it raise.

    Raises VeriscopeError where it is expected to pass a limit of the session, unless `anyway`: then
    it ends there. What `known` calls were answered is not asked again.
    """
    plan = planned(asked)
    if not anyway:
        refuse_excess(plan.budget)
    keys = keys_for(plan.spec)
    start = engine().service.start(plan, owner=owner(), keys=keys, known=tuple(known))
    open_run(engine().call(start))


def start_again(watched: Watched) -> None:
    """Run what was run once more. What a run that ended at a limit was answered is known."""
    events = watched.trace.events if watched.view.limit else ()
    start(watched.spec, known=[one for one in events if isinstance(one, ModelCalled)])


def open_run(run_id: str) -> None:
    """Look at a run, live or recorded. Raises NotFoundError if this browser has no such run."""
    watched = watch(run_id)
    close()
    st.session_state[_WATCHED] = watched
    st.query_params["run"] = run_id


def watch(run_id: str) -> Watched:
    """Return a run, live or recorded, beside the one that is looked at. Raises NotFoundError."""
    service, looked_at = engine().service, current()
    if looked_at is not None and looked_at.run_id == run_id:
        # What a run that is over took is known only where it was followed.
        account = looked_at.account
    else:
        account = service.account(run_id, owner=owner())
    return Watched(run_id, engine().call(service.watch(run_id, owner=owner())), account)


def current() -> Watched | None:
    """Return the run that is looked at, if any."""
    return st.session_state.get(_WATCHED)


def follow_address() -> VeriscopeError | None:
    """Make the address's `run` and the run that is looked at the same; the address comes first.

    Returns why the run of the address cannot be shown, if it cannot.
    """
    asked, watched = st.query_params.get("run"), current()
    if asked and (watched is None or watched.run_id != asked):
        try:
            open_run(asked)
        except VeriscopeError as error:
            close()
            return error
    elif watched is not None and not asked:
        st.query_params["run"] = watched.run_id
    return None


def stop() -> None:
    """End the run that is looked at; what it has stays."""
    watched = current()
    if watched is not None:
        engine().call(engine().service.stop(watched.run_id, owner=owner()))


def close() -> None:
    """Look at no run any more."""
    watched = st.session_state.pop(_WATCHED, None)
    if watched is not None:
        watched.close()
