"""Sessions carried to another store, and labels in the forms of other programs."""

from __future__ import annotations

import csv
import io
import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipelines.annotation.adjudication import adjudicate
from pipelines.annotation.formats import (
    code_point_offset,
    export_csv,
    export_label_studio,
    export_session,
    import_session,
    read_csv,
    read_label_studio,
    utf16_offset,
)
from pipelines.annotation.labelling import Adjudication, ReadLabel, standing_labels
from pipelines.annotation.sessions import Lead
from pipelines.annotation.sources import read_labels
from pipelines.annotation.types import ItemPlace, SessionItem, SpanLabel, label_adapter
from pipelines.errors import InvalidInputError
from pipelines.store import RunStore
from tests.pipelines.annotation.bench import TEXT, VALUES, item, join, label_all, lead_session, take


def worked(store: RunStore) -> Lead:
    """A session in which everything happened that can happen."""
    gold = label_adapter.validate_python(VALUES["answer"])
    items = [*(item(task) for task in VALUES), item("answer", 1, gold=gold, probability=0.5)]
    recorded = items[2].body.model_copy(update={"place": ItemPlace(run="r1")})
    items[2] = item("sentence", body=recorded)
    lead = lead_session(store, items, overlap=2, without_gold=False, gold_every=3)
    ann, bo = join(lead, "Ann", "=Bo()")
    label_all(ann)
    lead.set_guidelines("Read it twice.")
    first = bo.next()
    bo.skip(first.item, "unclear", client="s")  # type: ignore[union-attr]
    label_all(bo, {1: {"task": "span", "spans": []}})
    ann.reveal(2, client="r")
    ann.change(2, {"task": "sentence", "verdict": "major"}, client="c")
    ann.undo(3, client="u")
    ann.comment(0, "Delft \u2014 代尔夫特\u2028?", client="m")
    label = label_adapter.validate_python(VALUES["span"])
    adjudicate(lead, "Lee", 1, Adjudication(label=label, gap=True), client="d")
    published = label_adapter.validate_python(VALUES["answer"])
    lead.import_labels("published", [ReadLabel("answer-0", published)])
    return lead


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines of the file of such a session."""
    with closing(RunStore(f"sqlite:///{tmp_path_factory.mktemp('worked')}/runs.db")) as store:
        return list(export_session(worked(store)))


def test_exported_imported_and_exported_again_it_is_the_same(store: RunStore, tmp_path: Path):
    lead = worked(store)
    text = "".join(export_session(lead))
    with closing(RunStore(f"sqlite:///{tmp_path}/other/runs.db")) as other:
        copy = import_session(other, "you", text.splitlines(keepends=True))
        assert "".join(export_session(copy)) == text
        assert copy.session.owner == "you"
        assert copy.session_id != lead.session_id
        assert standing_labels(copy.events()) == standing_labels(lead.events())
        # It goes on where it was: the person who undid a label has that item again.
        worker = copy.invite("annotator", annotator=0)
        assert worker.split(".")[1] not in text
        with pytest.raises(InvalidInputError):
            copy.set_gold(1, None)


@pytest.mark.parametrize(
    ("number", "find", "put", "said"),
    [
        (1, "veriscope-annotation", "other", "line 1"),
        (1, '"overlap": 2', '"overlap": 0', "overlap is not 1 to 50 .line 1"),
        (2, '"kind": "guidelines"', '"kind": "thing"', "'thing' is not known .line 2"),
        (2, "Read", "\\", "line 2"),
        (8, '"number": 0', '"number": 3', "an item is missing .line 8"),
        (8, '"task": "concept"', '"task": "answer"', "the item's task is answer"),
        (-1, '"seq": ', '"seq": 9', "an event is missing"),
        (-1, '"annotator": ', '"annotator": 9', "an annotator is missing"),
        (-1, '"verdict": "partly"', '"verdict": "fine"', "verdict"),
        (2, '"kind": "guidelines"', '"kind": []', "is not known .line 2"),
        (-1, '"overlap": ', f'"overlap": 1{"0" * 30}', "overlap is not 1 to 50"),
        (-1, '"run": ""', f'"run": "{"r" * 65}"', "name of a run is too long"),
        (-1, '"seconds": null', '"seconds": 1e999', "active time is impossible"),
        (1, '"name": "Ada"', f'"name": "Ada{" " * 200}"', "no usable name .line 1"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_line(
    store: RunStore, exported: list[str], number: int, find: str, put: str, said: str
):
    lines = [*exported]
    at = number if number < 0 else number - 1
    changed = lines[at].replace(find, put)
    assert changed != lines[at]
    lines[at] = changed
    with pytest.raises(InvalidInputError, match=said):
        import_session(store, "you", lines)
    assert store.annotations.list("you") == []
    with pytest.raises(InvalidInputError, match="no session"):
        import_session(store, "you", [])


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        ("2024-05-01T10:00:00", "names no zone"),
        ("0001-01-01T00:00:00+23:00", "is impossible"),
        ("9999-12-31T23:00:00-23:00", "is impossible"),
    ],
)
@pytest.mark.parametrize(("number", "field"), [(1, "created"), (4, "joined"), (-1, "at")])
def test_a_time_that_cannot_be_stored_is_refused(
    store: RunStore, exported: list[str], moment: str, said: str, number: int, field: str
):
    lines = [*exported]
    at = number if number < 0 else number - 1
    told = json.loads(lines[at])
    place = told["session"] if number == 1 else told
    assert field in place
    place[field] = moment
    lines[at] = json.dumps(told)
    with pytest.raises(InvalidInputError, match=f"the time {field} {said}"):
        import_session(store, "you", lines)
    assert store.annotations.list("you") == []


def test_names_that_no_database_tells_apart_are_refused(store: RunStore, exported: list[str]):
    text = (
        "".join(exported)
        .replace('"name": "Ann"', '"name": "A\\u0000"')
        .replace('"=Bo()"', '"A\\ufffd"')
    )
    with pytest.raises(InvalidInputError, match="two parts have one name"):
        import_session(store, "you", text.splitlines())
    assert store.annotations.list("you") == []


def test_what_is_exported_is_one_moment_of_a_session_in_which_people_work(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
):
    lead = lead_session(store, [item("answer", n) for n in range(3)], overlap=1)
    (ann,) = join(lead, "Ann")
    read = store.annotations.items

    def items(session_id: str) -> object:
        # Somebody comes and labels between the parts.
        found = read(session_id)
        (late,) = join(lead, f"Late {len(lead.annotators())}")
        late.label(take(late).item, VALUES["answer"], client="c")
        return found

    monkeypatch.setattr(store.annotations, "items", items)
    ann.label(take(ann).item, VALUES["answer"], client="c")
    assert len(export_csv(lead).splitlines()) == 2
    assert len(json.loads(export_label_studio(lead))) == 3
    import_session(store, "you", export_session(lead))


def test_halves_of_surrogate_pairs_in_a_file_do_not_spoil_the_next_export(
    store: RunStore, exported: list[str]
):
    text = "".join(exported).replace("Delft \u2014", "\\ud800 \u2014")
    text = text.replace("Delft \\u2014", "\\ud800")
    assert "\\ud800" in text
    copy = import_session(store, "you", text.splitlines())
    assert "".join(export_session(copy)).encode()


def test_labels_that_a_file_only_claims_to_have_are_counted(store: RunStore, exported: list[str]):
    text = "".join(exported)
    forged = text.replace('"labels": 2', '"labels": 40')
    assert forged != text
    copy = import_session(store, "you", forged.splitlines())
    assert max(one.labels for one in copy.items()) <= 2


def test_csv_has_a_row_for_each_label_with_who_when_and_which_guidelines(store: RunStore):
    lead = worked(store)
    rows = list(csv.DictReader(io.StringIO(export_csv(lead))))
    assert len(rows) == len(standing_labels(lead.events()))
    spans = next(row for row in rows if row["task"] == "span" and row["annotator"] == "Ann")
    assert json.loads(spans["spans"]) == [{"start": 16, "end": 23, "kind": "entity"}]
    assert (spans["text"], spans["seconds"], spans["guidelines"]) == (TEXT, "5.0", "1")
    # A spreadsheet would compute what begins with an equals sign.
    assert {row["annotator"] for row in rows} == {"Ann", "'=Bo()", "published"}
    assert {row["guidelines"] for row in rows if row["annotator"] == "'=Bo()"} == {"2"}


def rows_of(lead: Lead) -> list[dict[str, str]]:
    """The rows of the CSV, without what cannot come back: how often a label was changed."""
    rows = [dict(row) for row in csv.DictReader(io.StringIO(export_csv(lead)))]
    told = [{name: cell for name, cell in row.items() if name != "changes"} for row in rows]
    return sorted(told, key=lambda row: (row["item"], row["annotator"]))


def test_labels_that_go_out_and_come_back_keep_who_when_and_which_guidelines(
    store: RunStore, tmp_path: Path
):
    lead = worked(store)
    rows = rows_of(lead)
    assert {(row["guidelines"], row["revealed"]) for row in rows} == {
        ("1", "0"),
        ("2", "0"),
        ("2", "1"),
    }
    assert {row["run"] for row in rows if row["task"] == "sentence"} == {"r1"}
    files = {
        "labels.csv": export_csv(lead),
        "labels.json": export_label_studio(lead),
        "labels.jsonl": "".join(export_session(lead)),
    }
    items = read_label_studio(files["labels.json"])[0]
    for name, text in files.items():
        with closing(RunStore(f"sqlite:///{tmp_path}/{name}/runs.db")) as other:
            copy = lead_session(other, items)
            copy.set_guidelines("Read it twice.")
            for person, labels in read_labels(name, text.encode()).items():
                copy.import_labels(person, labels)
            assert rows_of(copy) == rows, name


def test_a_version_that_the_session_does_not_have_is_the_present_one(store: RunStore):
    lead = lead_session(store, [item("answer", n) for n in range(3)])
    lead.set_guidelines("Read it twice.")
    head = "key,task,annotator,label,guidelines\n"
    text = head + "answer-0,answer,Ann,wrong,1\nanswer-1,answer,Ann,wrong,3\n"
    (labels,) = read_csv(text + "answer-2,answer,Ann,wrong,\n").values()
    assert [one.guidelines for one in labels] == [1, 3, None]
    lead.import_labels("Ann", labels)
    assert [event.guidelines for event in lead.events()] == [1, 2, 2]


@pytest.mark.parametrize("told", ["", "0", "-1", "x", "1.5", "9" * 5000, None, True, 0, [1], {}])
def test_what_is_no_version_is_none(told: object):
    row = {"data": {"text": "a"}, "annotations": [{"completed_by": "Ann", "result": []}]}
    row["data"]["veriscope"] = {"labels": [{"annotator": "Ann", "guidelines": told}, 3]}
    ((label,),) = read_label_studio(json.dumps([row]))[1].values()
    assert label.guidelines is None


def test_label_studio_has_what_it_has_no_fields_for_in_the_data(store: RunStore):
    lead = worked(store)
    tasks = json.loads(export_label_studio(lead))
    told = {one["data"]["veriscope"]["key"]: one["data"]["veriscope"]["labels"] for one in tasks}
    (ann, bo) = told["span-0"]
    assert (ann["annotator"], ann["guidelines"], ann["overlap"], ann["run"]) == ("Ann", 1, 2, "")
    assert (bo["annotator"], bo["guidelines"], bo["seconds"]) == ("=Bo()", 2, 5.0)
    # Where there is a result, its `meta` has the version and the run as well.
    metas = {
        (one["data"]["veriscope"]["key"], each["completed_by"]): [
            result["meta"] for result in each["result"]
        ]
        for one in tasks
        for each in one["annotations"]
    }
    assert metas["span-0", "Ann"] == [{"guidelines": 1, "run": ""}]
    assert metas["span-0", "=Bo()"] == []
    assert metas["answer-0", "=Bo()"] == [{"guidelines": 2, "run": ""}]


@pytest.mark.parametrize(
    ("at", "seconds", "read"),
    [
        ("2024-05-01T10:00:00+02:00", "2.5", (datetime(2024, 5, 1, 8, tzinfo=UTC), 2.5)),
        ("2024-05-01 10:00", "", (datetime(2024, 5, 1, 10, tzinfo=UTC), None)),
        ("01/05/2024", "-1", (None, None)),
        ("", "nan", (None, None)),
    ],
)
def test_times_are_kept_where_they_can_be_read(at: str, seconds: str, read: object):
    head = "key,task,annotator,label,at,seconds"
    (one,) = read_csv(f"{head}\nk,answer,Ann,wrong,{at},{seconds}\n")["Ann"]
    assert (one.at, one.seconds) == read


def test_a_table_whose_head_cannot_be_read_is_refused():
    # A cell can be of any length, whatever was read before.
    with pytest.raises(InvalidInputError, match="no column key"):
        read_csv("k" * 200_000 + ",task\n")
    with pytest.raises(InvalidInputError, match="unexpected end of data"):
        read_csv('"key,task,annotator\n')
    with pytest.raises(InvalidInputError, match="no column key"):
        read_csv("")


def test_who_has_the_name_of_somebody_else_is_marked_as_imported(store: RunStore):
    lead = lead_session(store, [item("answer")])
    (ann,) = join(lead, "Ann")
    label_all(ann)
    read = [ReadLabel("answer-0", label_adapter.validate_python(VALUES["answer"]))]
    assert lead.import_labels(" Ann ", read) == 1
    # The same file once more brings nothing new.
    assert lead.import_labels("Ann", read) == 0
    assert [(one.name, one.kind) for one in lead.annotators()] == [
        ("Ann", "person"),
        ("Ann (imported)", "imported"),
    ]
    long = "n" * 200
    lead.store.annotations.add_annotator(lead.session_id, long, "person")
    lead.import_labels(long, read)
    assert lead.annotators()[-1].name == "n" * 189 + " (imported)"


def test_a_time_to_come_is_now(store: RunStore):
    lead = lead_session(store, [item("answer")])
    label = label_adapter.validate_python(VALUES["answer"])
    lead.import_labels("other", [ReadLabel("answer-0", label, datetime(2999, 1, 1, tzinfo=UTC))])
    (event,) = lead.events()
    assert event.at < datetime(2998, 1, 1, tzinfo=UTC)


def test_a_file_without_labels_says_so(store: RunStore):
    text = export_label_studio(lead_session(store))
    with pytest.raises(InvalidInputError, match=r"no labels in a\.json"):
        read_labels("a.json", text.encode())


def test_label_studio_reads_utf16_and_what_was_exported_comes_back(store: RunStore):
    lead = worked(store)
    text = export_label_studio(lead)
    task = next(one for one in json.loads(text) if one["data"]["veriscope"]["key"] == "span-0")
    value = task["annotations"][0]["result"][0]["value"]
    # The flower, one code point at 22, takes two UTF-16 units, which end at 24.
    assert (value["start"], value["end"], value["text"]) == (16, 24, TEXT[16:23])
    items, labels = read_label_studio(text)
    stored = {one.number: one for one in lead.items()}
    assert [(one.key, one.body.model_dump(mode="json")) for one in items] == [
        (one.key, one.body) for one in stored.values()
    ]
    names = {one.number: one.name for one in lead.annotators()}
    expected: dict[str, list[object]] = {}
    for one in standing_labels(lead.events()):
        expected.setdefault(names[one.annotator], []).append(one.read(stored[one.item].key))
    assert {name: sorted(given, key=str) for name, given in labels.items()} == {
        name: sorted(given, key=str) for name, given in expected.items()
    }


def test_tasks_of_label_studio_become_items():
    region = {"start": 2, "end": 4, "labels": ["Made up"]}
    told = [
        {
            "id": 7,
            "data": {"text": "a 🌷 b", "question": "Which?"},
            "annotations": [
                {
                    "completed_by": {"email": "ann@example.org"},
                    "result": [{"type": "labels", "value": region, "from_name": "x"}],
                },
                {"completed_by": 2, "was_cancelled": True, "result": []},
                {"completed_by": 3, "result": []},
            ],
        }
    ]
    (found,), labels = read_label_studio(json.dumps(told))
    assert (found.body.task, found.body.question) == ("span", "Which?")
    label = labels["ann@example.org"][0].label
    assert label == SpanLabel.model_validate({"spans": [{"start": 2, "end": 3}]})
    assert labels["3"] == [ReadLabel(found.key, SpanLabel())]
    for text, said in (("{", "no JSON"), ("[]", "no list"), ('[{"data": {}}]', "line 1")):
        with pytest.raises(InvalidInputError, match=said):
            read_label_studio(text)


def test_tasks_of_two_label_studio_projects_with_one_number_are_two_items(store: RunStore):
    def read(text: str) -> SessionItem:
        told = [{"id": 1, "data": {"text": text}, "annotations": []}]
        return read_label_studio(json.dumps(told))[0][0]

    one, other = read("Ada was born in Delft."), read("Ada wrote.")
    assert read("Ada was born in Delft.") == one
    assert len(one.key) <= 64
    lead = lead_session(store, [one])
    assert lead.add_items([other, one]) == 1


def test_who_annotated_may_be_unknown_and_a_wrong_label_is_named_with_its_task():
    good = {"data": {"text": "a"}, "annotations": [{"completed_by": None, "result": []}]}
    assert set(read_label_studio(json.dumps([good]))[1]) == {"Label Studio"}
    result = [{"type": "labels", "value": {"start": "x", "end": 1}}]
    wrong = {"data": {"text": "a"}, "annotations": [{"result": result}]}
    with pytest.raises(InvalidInputError, match=r"a region has no start and end.*line 2"):
        read_label_studio(json.dumps([good, wrong]))


@pytest.mark.parametrize("text", ["abc", "a🌷b", "🌷🌷", "e\u0301 שלום 中文", ""])
def test_offsets_are_converted_both_ways(text: str):
    for at in range(len(text) + 1):
        units = utf16_offset(text, at)
        assert units == len(text[:at].encode("utf-16-le")) // 2
        assert code_point_offset(text, units) == at
    assert code_point_offset("🌷", 1) == 0
