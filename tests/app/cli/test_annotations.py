"""Annotation sessions on the command line: what is printed, what is stored, and how it exits."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from app.cli import main as cli
from app.cli.shared import OWNER
from pipelines.annotation.adjudication import adjudicate
from pipelines.annotation.labelling import Adjudication, AssignedItem, Worker
from pipelines.annotation.results import session_detectors, session_finals
from pipelines.annotation.sessions import Invitation, Lead, enter
from pipelines.annotation.types import Hidden, label_adapter
from pipelines.store import RunStore, file_url
from tests.pipelines.annotation.bench import RUN, VALUES
from tests.pipelines.store.read_only import read_only

KNOWN = "was a poet of the river who wrote about water"
INVENTED = "zebras quarrelled magnificently beneath violet cathedrals"


def biography(number: int, wrong: int) -> dict[str, object]:
    """A life in the form of SelfCheckGPT's WikiBio, whose sentence `wrong` is invented.

    The samples hold every word of the true sentences and none of the invented one.
    """
    name = f"person{number}"
    sentences = [
        f"{name.title()} {INVENTED}." if at == wrong else f"{name.title()} {KNOWN} {at}."
        for at in range(3)
    ]
    labels = ["accurate"] * 3
    labels[wrong] = "major_inaccurate" if number % 2 else "minor_inaccurate"
    return {
        "wiki_bio_test_idx": number,
        "concept": name,
        "gpt3_text": " ".join(sentences),
        "gpt3_sentences": sentences,
        "annotation": labels,
        "wiki_bio_text": f"{name.title()} {KNOWN}.",
        "gpt3_text_samples": [f"{name.title()} {KNOWN} 0. {name.title()} {KNOWN} 1 2."] * 3,
    }


class Line:
    """The command line on a folder of its own; `call` gives status, standard output and error."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], stack: ExitStack) -> None:
        self._capsys = capsys
        self.stack = stack
        self.data = folder / "data"
        self.script = folder / "script.json"
        self.script.write_text(json.dumps({"name": "script", "replies": []}))
        self.lives = folder / "lives.jsonl"
        lives = [biography(number, number % 3) for number in range(8)]
        self.lives.write_text("".join(json.dumps(one) + "\n" for one in lives))

    def call(self, *arguments: str) -> tuple[int, str, str]:
        status = cli.main(["--data", str(self.data), *arguments])
        captured = self._capsys.readouterr()
        return status, captured.out, captured.err

    def run(self, *arguments: str) -> str:
        """What a command of `annotations` prints that must succeed."""
        status, out, err = self.call("annotations", *arguments)
        assert status == 0, err
        return out

    def refused(self, *arguments: str) -> str:
        """What is said of input that cannot be used."""
        status, out, err = self.call("annotations", *arguments)
        assert (status, out) == (2, ""), (status, out, err)
        return err

    def created(self, *arguments: str) -> tuple[str, str]:
        """A new session: its id, and the link to join it."""
        session, link = self.run("create", *arguments).splitlines()
        return session, link.removeprefix("/annotate?link=")

    def checked(self) -> str:
        """An evaluation of the lives by two detectors; its id."""
        status, _, err = self.call(
            *("evaluate", "--data", str(self.lives), "--texts", "--at-once", "1", "--yes"),
            *("--profile", "scripted", "--model", str(self.script)),
            *("--methods", "selfcheck,selfcheck", "--set", "selfcheck.variant=ngram"),
            *("--set", "selfcheck 2.variant=ngram", "--set", "selfcheck 2.ngram=unigram_avg"),
            *("--set", "selfcheck.samples=3", "--set", "selfcheck 2.samples=3"),
        )
        assert status == 0, err
        return self.call("evaluations", "list")[1].split()[0]

    def store(self) -> RunStore:
        return self.stack.enter_context(closing(RunStore(file_url(self.data))))

    def join(self, token: str, name: str) -> Worker:
        invitation = enter(self.store(), token, "127.0.0.1")
        assert isinstance(invitation, Invitation)
        return invitation.join(name)[0]


@pytest.fixture
def line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Line]:
    with ExitStack() as stack:
        yield Line(tmp_path, capsys, stack)


def label_all(worker: Worker, **verdicts: str) -> None:
    while isinstance(found := worker.next(), AssignedItem):
        value = {**VALUES[found.body.task]}
        if found.body.task in verdicts:
            value["verdict"] = verdicts[found.body.task]
        worker.label(found.item, value, client=f"c{found.item}", seconds=5)


def test_a_session_over_labelled_lives_holds_the_detectors_against_their_labels(line: Line):
    evaluation = line.checked()
    session, _ = line.created(
        *("Lives", "--evaluation", evaluation, "--tasks", "sentence", "--without-gold"),
        *("--keep-labels", "WikiBio"),
    )
    lead = Lead(line.store(), session, OWNER)
    # What the detectors said is kept with the items, hidden.
    for stored in lead.items():
        verdicts = Hidden.model_validate(stored.hidden).verdicts
        assert [one.method for one in verdicts] == ["selfcheck", "selfcheck 2"]
        assert all(one.doubt == one.value for one in verdicts)
    assert [one.kind for one in lead.annotators()] == ["imported"]
    status = line.run("status", session)
    assert "WikiBio (imported): 24 labelled" in status
    results = line.run("results", session)
    assert "sentence: final labels of the items: 24 single." in results
    assert "24 items in 8 texts have a label and a score" in results
    assert "AUC-PR of chance: 0.33 errors, 0.67 others" in results
    # Every word of the invented sentences is missing from the samples: nothing is ranked wrongly.
    (row,) = [one for one in results.splitlines() if one.startswith("selfcheck  ")]
    assert (row.split()[1], row.split()[-1]) == ("1.00", "24")
    assert row.count("1.00 [1.00, 1.00]") == 3
    told = json.loads(line.run("results", session, "--format", "json"))
    assert told["detection"]["base_rate"] == pytest.approx(1 / 3)
    # The pages read the same numbers.
    whole = lead.whole()
    found = session_detectors(whole, session_finals(whole), "sentence").report
    assert found is not None
    assert told["detection"] == found.detection.model_dump(mode="json")
    table = line.run("results", session, "--format", "markdown", "--annotator", "WikiBio")
    assert r"| selfcheck | 1.00 \[1.00, 1.00\]" in table


def test_fitted_thresholds_become_a_profile(line: Line):
    evaluation = line.checked()
    session, _ = line.created(
        *("Lives", "--evaluation", evaluation, "--tasks", "sentence", "--without-gold"),
        *("--keep-labels", "WikiBio"),
    )
    fitted = line.run("results", session, "--fit")
    assert "(threshold), fitted on 12, reported on 12; right 12 of 12" in fitted
    said = line.refused("results", session, "--fit", "--save-profile", "fitted")
    assert "Two of the chosen detectors are of the method 'selfcheck'." in said
    assert "--fit" in line.refused("results", session, "--save-profile", "fitted")
    odd = ("--fit", "--save-profile", "fitted", "--detectors", "luq")
    assert "no detector 'luq'" in line.refused("results", session, *odd)
    keep = ("--fit", "--save-profile", "fitted", "--detectors", "selfcheck 2")
    assert line.call("annotations", "results", session, *keep)[0] == 0
    profile = line.call("profiles", "show", "fitted")[1]
    # The settings with which it judged are kept beside the threshold.
    assert "selfcheck.ngram = unigram_avg" in profile
    assert "selfcheck.threshold = " in profile
    assert "data_set Lives" in profile
    assert ", task sentence: platt, fitted to 12 labels of 'Lives'; Brier score 0." in profile
    assert "not for these settings" not in profile
    again = line.call("annotations", "results", session, *keep)
    assert again[0] == 2
    curve = ("--replace", "--calibration")
    assert line.call("annotations", "results", session, *keep, *curve, "none")[0] == 0
    assert "platt" not in line.call("profiles", "show", "fitted")[1]
    assert line.call("annotations", "results", session, *keep, *curve, "isotonic")[0] == 0
    assert "isotonic, fitted to 12" in line.call("profiles", "show", "fitted")[1]
    # The next evaluation with the profile shows it at every sentence of its runs.
    status, _, err = line.call(
        *("evaluate", "--data", str(line.lives), "--texts", "--at-once", "1", "--yes"),
        *("--profile", "scripted", "--model", str(line.script), "--methods", "selfcheck"),
        *("--settings-profile", "fitted", "--limit", "1"),
    )
    assert status == 0, err
    held = [
        spec.calibrations
        for spec in line.store().specs(OWNER, line.store().ids(OWNER, limit=100)).values()
    ]
    (used,) = [one for one in held if one]
    assert used[0].score.startswith("selfcheck_")
    assert (used[0].task, used[0].fit.kind, used[0].labels) == ("sentence", "isotonic", 12)


def test_people_join_label_and_are_counted(line: Line, tmp_path: Path):
    status, out, _ = line.call("import", str(unpacked(tmp_path)))
    assert status == 0
    run = out.strip()
    guidelines = tmp_path / "guide.md"
    # Some editors mark the beginning of a text.
    guidelines.write_text("Read the *evidence*.", encoding="utf-8-sig")
    session, token = line.created(
        *("Clinton", "--run", run, "--tasks", "answer,sentence", "--without-gold"),
        *("--guidelines", str(guidelines), "--show", "never", "--names", "Ann,Bo"),
    )
    ann, bo = line.join(token, "Ann"), line.join(token, "Bo")
    assert ann.guidelines == "Read the *evidence*."
    label_all(ann)
    label_all(bo, answer="correct")
    told = line.run("status", session)
    assert "items have all their labels; 0 labels are missing." in told
    assert "Ann (person): " in told
    assert "5.0 s for a label (median)" in told
    assert "answer: alpha " in told
    shown = json.loads(line.run("status", session, "--json"))
    assert {one["task"] for one in shown["agreement"]} == {"answer", "sentence"}
    listed = line.run("list")
    assert listed.startswith(session)
    assert "  Clinton" in listed
    assert json.loads(line.run("list", "--json"))["name"] == "Clinton"
    line.run("close", session)
    assert "closed" in line.run("list")
    with pytest.raises(Exception, match="closed"):
        ann.label(0, VALUES["answer"], client="late")
    line.run("close", session, "--reopen")
    assert "  open  " in line.run("list")
    line.run("delete", session)
    assert line.run("list") == ""


def unpacked(folder: Path) -> Path:
    file = folder / "run.jsonl"
    file.write_bytes(gzip.decompress(RUN.read_bytes()))
    return file


def test_control_items_come_from_labels_that_are_known(line: Line):
    session, token = line.created(
        *("Lives", "--data", str(line.lives), "--tasks", "sentence", "--gold", "4"),
        *("--sample", "12", "--seed", "3", "--gold-every", "3"),
    )
    lead = Lead(line.store(), session, OWNER)
    items = lead.items()
    assert (len(items), sum(one.gold is not None for one in items)) == (12, 4)
    # Drawn at random, each says with which probability.
    assert {one.probability for one in items} == {0.5}
    assert (lead.spec.gold_every, lead.spec.without_gold) == (3, False)
    # Agreement is of the other items.
    for name in ("Ann", "Bo"):
        label_all(line.join(token, name))
    (agreed,) = json.loads(line.run("status", session, "--json"))["agreement"]
    assert (agreed["overall"]["items"], agreed["overall"]["shared"]) == (8, 8)
    said = line.refused("create", "Lives", "--data", str(line.lives))
    assert "--gold N where the data has labels, or --without-gold" in said
    few = ("create", "Lives", "--data", str(line.lives), "--gold", "99")
    assert "99 control items are asked for; " in line.refused(*few)
    none = ("--tasks", "comparison", "--without-gold")
    assert "nothing to label" in line.refused("create", "L", "--data", str(line.lives), *none)


@pytest.mark.parametrize(
    ("form", "suffix"), [("jsonl", ".jsonl"), ("csv", ".csv"), ("label-studio", ".json")]
)
def test_labels_go_out_and_into_another_session(line: Line, tmp_path: Path, form: str, suffix: str):
    create = ("--data", str(line.lives), "--tasks", "sentence", "--without-gold")
    first, token = line.created("First", *create)
    label_all(line.join(token, "=Ann"))
    second, _ = line.created("Second", *create)
    file = tmp_path / f"labels{suffix}"
    assert line.run("export", first, "--format", form, "--to", str(file)) == ""
    assert line.run("export", first, "--format", form)
    told = line.run("import", str(file), "--into", second, "--as", "Guest")
    assert told == "Guest: 24 labels, 24 of them new\n"
    assert line.run("import", str(file), "--into", second, "--as", "Guest").endswith(
        "0 of them new\n"
    )
    line.run("import", str(file), "--into", second)
    status = line.run("status", second)
    assert "Guest (imported): 24 labelled" in status
    assert "=Ann (imported): 24 labelled" in status
    assert "alpha not defined. All labels are equal" in status


def test_a_session_is_the_same_in_an_empty_database(
    line: Line, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    create = ("--data", str(line.lives), "--tasks", "sentence,answer", "--gold", "3")
    session, token = line.created("Carried", *create)
    ann, bo = line.join(token, "Ann"), line.join(token, "Bo")
    label_all(ann)
    first = bo.next()
    assert isinstance(first, AssignedItem)
    bo.skip(first.item, "The picture is missing 🌷.", client="s")
    label_all(bo, sentence="accurate")
    ann.comment(first.item, "她生于荷兰\u2028?", client="m")
    decision = Adjudication(label=label_adapter.validate_python(VALUES[first.body.task]), gap=True)
    adjudicate(Lead(line.store(), session, OWNER), "Lee", first.item, decision, client="d")
    line.run("close", session)
    file, again = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    line.run("export", session, "--to", str(file))
    with ExitStack() as stack:
        (tmp_path / "empty").mkdir()
        other = Line(tmp_path / "empty", capsys, stack)
        assert other.run("list") == ""
        copy = other.run("import", str(file)).strip()
        other.run("export", copy, "--to", str(again))
        assert other.run("status", copy) == line.run("status", session)
    assert again.read_bytes() == file.read_bytes()


def test_a_whole_session_is_imported_as_it_was(line: Line, tmp_path: Path):
    create = ("--data", str(line.lives), "--tasks", "sentence,answer", "--without-gold")
    guidelines = tmp_path / "guide.md"
    guidelines.write_text("Read the\u2028evidence.", encoding="utf-8")
    session, token = line.created("First", *create, "--guidelines", str(guidelines))
    label_all(line.join(token, "Ann"))
    file = tmp_path / "session.jsonl"
    line.run("export", session, "--to", str(file))
    # Another program writes as it is what ends a line, but for JSON does not.
    told = file.read_text(encoding="utf-8")
    assert "\\u2028" in told
    file.write_text(told.replace("\\u2028", "\u2028"), encoding="utf-8")
    copy = line.run("import", str(file)).strip()
    assert copy != session
    assert line.run("export", copy) == line.run("export", session)
    assert "--into" in line.refused("import", str(file), "--as", "Ann")
    scores = line.run("export", copy, "--format", "inspect", "--task", "answer").splitlines()
    assert json.loads(scores[0])["scorer"] == "human_answer"
    assert "--task" in line.refused("export", copy, "--format", "inspect")
    assert "inspect" in line.refused("export", copy, "--task", "answer")
    assert line.run("export", copy, "--format", "ragtruth") == ""
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{}\n", encoding="utf-8")
    assert "(line 1)" in line.refused("import", str(broken))
    assert "cannot be read" in line.refused("import", str(tmp_path / "none.jsonl"))
    bad = tmp_path / "bad.csv"
    bad.write_text("key,task,annotator,label\nk,sentence,Ann,fine\n", encoding="utf-8")
    assert "(line 2)" in line.refused("import", str(bad), "--into", copy)
    bad.write_text("key,label\nk,fine\n", encoding="utf-8")
    assert "no export of labels" in line.refused("import", str(bad), "--into", copy)


def test_links_are_made_and_withdrawn(line: Line):
    create = ("--data", str(line.lives), "--tasks", "answer", "--without-gold", "--days", "2")
    session, token = line.created("First", *create)
    line.join(token, "Ann")
    for more in (("--annotator", "Ann"), ("--role", "lead", "--days", "1"), ()):
        assert line.run("invite", session, *more).startswith("/annotate?link=")
    assert "Choose from: Ann." in line.refused("invite", session, "--annotator", "Bo")
    assert "--role" in line.refused("invite", session, "--annotator", "Ann", "--role", "lead")
    listed = line.run("links", session).splitlines()
    assert [one.split()[1] for one in listed].count("annotator") == 2
    assert token.partition(".")[2] not in "".join(listed)
    first = next(one.split()[0] for one in listed if token.startswith(one.split()[0]))
    withdrawn = line.run("links", session, "--revoke", first)
    assert [one for one in withdrawn.splitlines() if first in one and "withdrawn" in one]
    status, _, err = line.call("annotations", "links", session, "--revoke", "nothing")
    assert status == 1
    assert "link" in err


def test_a_read_only_folder_is_listed_shown_and_exported(
    open_folder: Path, capsys: pytest.CaptureFixture[str]
):
    line = Line(open_folder, capsys, ExitStack())
    create = ("--data", str(line.lives), "--tasks", "answer", "--without-gold")
    session, _ = line.created("First", *create, "--keep-labels", "File")
    with read_only(open_folder):
        assert session in line.run("list")
        assert "File (imported): 8 labelled" in line.run("status", session)
        assert line.run("export", session)
        status, _, err = line.call("annotations", "close", session)
        assert status == 1
        assert "none can be stored" in err


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("status", "none"), 1, "There is no annotation session of this name here."),
        (("delete", "none"), 1, "There is no annotation session of this name here."),
        (("create", "X", "--evaluation", "none", "--without-gold"), 1, "evaluation"),
        (("create", "X", "--run", "none", "--without-gold"), 1, "run"),
        (("create", "X", "--data", "none.jsonl", "--without-gold"), 2, "no data set"),
        (("create", "X", "--file", "none.jsonl", "--without-gold"), 2, "cannot be read"),
    ],
)
def test_what_is_not_there_is_said(line: Line, arguments: tuple[str, ...], status: int, said: str):
    found, out, err = line.call("annotations", *arguments)
    assert (found, out) == (status, "")
    assert said in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "X", "--without-gold"), "one of the arguments"),
        (("create", "X", "--data", "a", "--tasks", "odd"), "'odd' is none of"),
        (("create", "X", "--data", "a", "--gold", "1", "--without-gold"), "not allowed"),
        (("create", "X", "--data", "a", "--overlap", "0"), "no whole number from 1"),
        # What Python makes of the byte FF.
        (("results", "s", "--detectors", "slm,a\udcff"), "detectors is no text in UTF-8"),
        (("create", "X", "--data", "a", "--names", "Ann,\udcff"), "names is no text in UTF-8"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    line: Line, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
):
    with pytest.raises(SystemExit) as ended:
        line.call("annotations", *arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
