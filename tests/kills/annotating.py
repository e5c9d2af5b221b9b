"""Fifty people who label at once in a process that is killed: what they do, and what must be there.

Every person is a thread with a link of their own. What is sent and what was acknowledged is
printed; what was sent and not acknowledged is sent again by the next process, as a page does whose
connection was lost.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from pipelines.annotation.labelling import AssignedItem, Worker, standing_labels
from pipelines.annotation.sessions import Invitation, Lead, create_session, enter
from pipelines.annotation.types import ItemBody, SessionItem, SessionSpec
from pipelines.store import RunStore
from tests.kills.killing import Killer, lines
from tests.kills.work import _print_to

VERDICTS = ("correct", "partly", "wrong", "abstained")
CHANGED = 5
"""One of so many labels is changed after it was given."""


def verdict(who: int, item: int) -> str:
    """What a person says of an item: it tells the two."""
    return VERDICTS[sha256(f"{who}:{item}".encode()).digest()[0] % len(VERDICTS)]


def annotate(output: Path, url: str, links: list[str], again: list[dict[str, Any]]) -> None:
    """Label with every link at once until nothing is left; first send `again` what was sent."""
    _print_to(output)
    printing = Lock()
    store = RunStore(url)

    def tell(what: str, told: dict[str, Any]) -> None:
        with printing:
            print(json.dumps({**told, "what": what}), flush=True)

    def send(worker: Worker, told: dict[str, Any]) -> None:
        tell("sent", told)
        act = worker.change if told["kind"] == "changed" else worker.label
        value = {"task": "answer", "verdict": told["verdict"]}
        event = act(told["item"], value, client=told["client"], seconds=3)
        tell("stored", {**told, "seq": event.seq})

    def work(number: int) -> None:
        worker = enter(store, links[number], f"address-{number}")
        assert isinstance(worker, Worker)
        who = worker.annotator
        for told in again:
            if told["who"] == who:
                send(worker, told)
        while True:
            found = worker.next()
            if isinstance(found, AssignedItem):
                told = {"who": who, "item": found.item, "kind": "given"}
                told |= {"client": f"{who}-{found.item}", "verdict": verdict(who, found.item)}
                send(worker, told)
                if found.item % CHANGED == 0:
                    told |= {"kind": "changed", "client": f"{who}-{found.item}-changed"}
                    send(worker, told)
            elif found.status == "done":
                return
            else:
                # A page asks again, too, while others are at the last items.
                time.sleep(0.05)

    threads = [Thread(target=work, args=(number,), daemon=True) for number in range(len(links))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tell("done", {})
    os._exit(0)


@dataclass
class Annotating:
    """A session in one database, with as many people as are asked for."""

    killer: Killer
    url: str
    people: int
    items: int
    overlap: int
    sent: dict[str, dict[str, Any]] = field(default_factory=dict)
    stored: dict[str, dict[str, Any]] = field(default_factory=dict)
    resent: int = 0

    def __post_init__(self) -> None:
        with closing(RunStore(self.url)) as store:
            items = [
                SessionItem(key=f"i{n}", body=ItemBody(task="answer", text=f"Answer {n}."))
                for n in range(self.items)
            ]
            spec = SessionSpec(without_gold=True, lease=60)
            lead = create_session(store, "me", "Killed", spec, items, overlap=self.overlap)
            self._session = lead.session_id
            invitation = enter(store, lead.invite("join"), "address")
            assert isinstance(invitation, Invitation)
            self._links = [invitation.join(f"P{number}")[1] for number in range(self.people)]

    def work(self, longest: float | None) -> bool:
        """Let everybody label, and kill the process within `longest` seconds; whether it ended."""
        pending = [told for name, told in self.sent.items() if name not in self.stored]
        self.resent += len(pending)
        given = annotate, self.url, self._links, pending
        printed = (
            self.killer.finish(*given) if longest is None else self.killer.kill(longest, *given)
        )
        told = lines(printed)
        for one in told:
            if one["what"] == "done":
                continue
            target = self.sent if one["what"] == "sent" else self.stored
            earlier = target.get(one["client"])
            # Acknowledged twice, it is the same event.
            assert earlier is None or {**earlier, "what": one["what"]} == one
            target[one["client"]] = one
        self.check()
        return bool(told) and told[-1]["what"] == "done"

    def check(self) -> None:
        """No acknowledged label is lost, doubled or somebody else's; no item has too many."""
        with closing(RunStore(self.url)) as store:
            lead = Lead(store, self._session)
            events, items = lead.events(), lead.items()
        assert [one.seq for one in events] == list(range(len(events)))
        kept = {one.client: one for one in events}
        assert len(kept) == len(events)
        assert self.stored.keys() <= kept.keys() <= self.sent.keys()
        for name, told in self.stored.items():
            assert kept[name].seq == told["seq"]
        for one in events:
            assert one.client.split("-")[:2] == [str(one.annotator), str(one.item)]
            assert one.value["verdict"] == verdict(one.annotator, one.item)
        labels = standing_labels(events)
        for item in items:
            given = sum(one.item == item.number for one in labels)
            assert given == item.labels <= self.overlap

    def check_finished(self) -> None:
        """Every item has exactly as many labels as the session asks for."""
        with closing(RunStore(self.url)) as store:
            assert {one.labels for one in Lead(store, self._session).items()} == {self.overlap}
