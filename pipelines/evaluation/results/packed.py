"""What one system made of one item, and such scores by the hundred thousand.

An `ItemScore` says it of one item. `PackedScores` holds many of them in columns, which takes a
quarter of the memory, and makes an `ItemScore` where one is asked for. What reads all scores takes
whole columns.

Example::

    one = ItemScore(item="q1", method="direct", values={"f1": 0.5}, answer="Paris")
    scores = PackedScores.of([one])
    scores.column("values", "f1")  # array([0.5])
    scores[0].answer               # "Paris"
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from math import isfinite
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
    field_validator,
)

from pipelines.base import Frozen
from pipelines.evaluation.metrics.answers import SpanMatch, word_count
from pipelines.evaluation.statistics.estimates import Floats

ABSTAINED = "abstained"
"""The flag of a score whose system declined to answer."""


class ItemScore(Frozen):
    """What one system made of one item, once.

    `method` is the system's name in the evaluation, `repeat` counts from 0, `run` is the id of the
    recorded run, `group` that of the document which the item shares with others. `error` is the
    code of what failed, empty otherwise. `values` are the metrics of the final answer, None where
    one does not apply; `original_values` those of the answer that the method started from, where
    it rewrites. `cost` holds what `COSTS` names. `spans` counts what was found, marked and labelled
    of a text whose errors are labelled, for each way to match them; of labelled sentences the first
    holds the counts of their text. `bleu` is what the answer adds to BLEU of the corpus.
    """

    item: Annotated[str, Field(min_length=1)]
    group: str = ""
    method: Annotated[str, Field(min_length=1)]
    repeat: Annotated[int, Field(ge=0)] = 0
    run: str = ""
    error: str = ""
    values: dict[str, float | None] = Field(default_factory=dict)
    original_values: dict[str, float | None] = Field(default_factory=dict)
    cost: dict[str, float] = Field(default_factory=dict)
    spans: Annotated[
        dict[SpanMatch, tuple[int, int, int]], Field(exclude_if=lambda spans: not spans)
    ] = Field(default_factory=dict)
    bleu: Annotated[tuple[int, ...], Field(exclude_if=lambda counts: not counts)] = ()
    answer: str = ""
    original: str = ""
    flags: tuple[str, ...] = ()

    @field_validator("values", "original_values", "cost")
    @classmethod
    def _finite(cls, values: dict[str, float | None]) -> dict[str, float | None]:
        odd = [name for name, value in values.items() if value is not None and not isfinite(value)]
        if odd:
            raise ValueError(f"{', '.join(odd)}: not a finite number; use None for no value.")
        return values

    @property
    def abstained(self) -> bool:
        """Whether the system declined to answer."""
        return ABSTAINED in self.flags


# Scores in columns.

Kind = Literal["values", "original_values", "cost", "spans", "bleu"]
"""The fields of a score that hold numbers."""

Number = tuple[Kind, str]
"""A column of numbers: "f1" of the "values"; of "spans" the match and the place, such as "exact 0",
of "bleu" the place alone."""

Places = NDArray[np.intp]
_Column = NDArray[np.floating[Any]]

_PART = 500
"""Scores that are packed, or made, at a time."""

_ALL_OF_SCORE = set(ItemScore.model_fields)

T = TypeVar("T")


class _Shape(NamedTuple):
    """Which numbers a score holds, in its order. Few shapes come in many scores."""

    values: tuple[str, ...]
    original_values: tuple[str, ...]
    cost: tuple[str, ...]
    spans: tuple[SpanMatch, ...]
    bleu: int

    @property
    def numbers(self) -> list[Number]:
        """The columns that they stand in."""
        return [
            *(("values", name) for name in self.values),
            *(("original_values", name) for name in self.original_values),
            *(("cost", name) for name in self.cost),
            *(("spans", span_place(match, place)) for match in self.spans for place in range(3)),
            *(("bleu", str(place)) for place in range(self.bleu)),
        ]


def span_place(match: SpanMatch, place: int) -> str:
    """Return the column of what was found (0), marked (1) or labelled (2)."""
    return f"{match} {place}"


@dataclass(frozen=True)
class _Coded(Generic[T]):
    """Something of each score that is the same in many: its place in `names`."""

    names: tuple[T, ...]
    codes: NDArray[np.int32]

    @classmethod
    def of(cls, found: Iterable[T]) -> _Coded[T]:
        places: dict[T, int] = {}
        codes = [places.setdefault(one, len(places)) for one in found]
        return cls(tuple(places), np.array(codes, dtype=np.int32))

    @classmethod
    def joined(cls, parts: Sequence[_Coded[T]]) -> _Coded[T]:
        places: dict[T, int] = {}
        codes = [
            np.array([places.setdefault(one, len(places)) for one in part.names], np.int32)[
                part.codes
            ]
            for part in parts
        ]
        return cls(tuple(places), np.concatenate(codes))

    def taken(self, places: Places) -> _Coded[T]:
        return replace(self, codes=self.codes[places])

    def used(self) -> list[T]:
        """Return the names that a score has, as they come first."""
        codes, first = np.unique(self.codes, return_index=True)
        return [self.names[code] for code in codes[np.argsort(first)].tolist()]

    def places_in(self, wanted: Sequence[T]) -> Places:
        """Return the place of each score's name in `wanted`, -1 where it is not among them."""
        known = {name: place for place, name in enumerate(wanted)}
        found = (known.get(name, -1) for name in self.names)
        return np.fromiter(found, dtype=np.intp, count=len(self.names))[self.codes]

    def those(self, *wanted: T) -> NDArray[np.bool_]:
        """Return for each score whether its name is among `wanted`."""
        return self.places_in(wanted) >= 0


_TEXTS = ("run", "answer", "original")


@dataclass(frozen=True)
class _Texts:
    """The texts of scores in UTF-8, one behind the other in some pools.

    `pool` says in which, `begins` and `ends`, [scores, texts], where. An original that the answer
    equals stands where the answer does.
    """

    pools: tuple[bytes, ...]
    pool: NDArray[np.int32]
    begins: NDArray[np.uint32]
    ends: NDArray[np.uint32]

    @classmethod
    def of(cls, fields: Sequence[Mapping[str, Any]]) -> _Texts:
        pool, places = bytearray(), list[list[tuple[int, int]]]()
        for one in fields:
            row: list[tuple[int, int]] = []
            for name in _TEXTS:
                if name == "original" and one["original"] == one["answer"]:
                    row.append(row[-1])
                    continue
                begin = len(pool)
                # A reply may hold halves of characters.
                pool += one[name].encode(errors="surrogatepass")
                row.append((begin, len(pool)))
            places.append(row)
        found = np.array(places, dtype=np.uint32).reshape(-1, len(_TEXTS), 2)
        begins, ends = (np.ascontiguousarray(found[:, :, end]) for end in range(2))
        return cls((bytes(pool),), np.zeros(len(places), np.int32), begins, ends)

    @classmethod
    def joined(cls, parts: Sequence[_Texts]) -> _Texts:
        before = np.cumsum([0, *(len(one.pools) for one in parts)])
        return cls(
            tuple(chain.from_iterable(one.pools for one in parts)),
            np.concatenate(
                [one.pool + np.int32(k) for one, k in zip(parts, before[:-1], strict=True)]
            ),
            np.concatenate([one.begins for one in parts]),
            np.concatenate([one.ends for one in parts]),
        )

    def taken(self, places: Places) -> _Texts:
        return _Texts(self.pools, self.pool[places], self.begins[places], self.ends[places])

    def rows(self) -> Iterator[list[str]]:
        """Yield the texts of each score."""
        for pool, begins, ends in zip(
            self.pool.tolist(), self.begins.tolist(), self.ends.tolist(), strict=True
        ):
            held = self.pools[pool]
            yield [
                held[begin:end].decode(errors="surrogatepass")
                for begin, end in zip(begins, ends, strict=True)
            ]


@dataclass(frozen=True, eq=False)
class PackedScores(Sequence[ItemScore]):
    """Scores that do not change, in columns. Equal to any sequence of equal scores.

    `items`, `groups`, `methods`, `errors`, `flags` and `shapes` hold what is the same in many,
    `repeats` the number of each score's repeat, `numbers` columns with NaN where a score has
    nothing, in the narrowest floats that hold them exactly, `texts` the rest.
    """

    items: _Coded[str]
    groups: _Coded[str]
    methods: _Coded[str]
    errors: _Coded[str]
    flags: _Coded[tuple[str, ...]]
    shapes: _Coded[_Shape]
    repeats: Places
    numbers: Mapping[Number, _Column]
    texts: _Texts

    @classmethod
    def of(cls, scores: Iterable[ItemScore]) -> PackedScores:
        """Return `scores`, of which some hundreds are in memory at a time."""
        return scores if isinstance(scores, PackedScores) else cls.read(map(vars, scores))

    @classmethod
    def read(cls, fields: Iterable[Mapping[str, Any]]) -> PackedScores:
        """Return scores whose `fields` were checked before, such as those that were stored."""
        left = iter(fields)
        return cls.joined(map(_packed, iter(lambda: list(islice(left, _PART)), [])))

    @classmethod
    def joined(cls, parts: Iterable[PackedScores]) -> PackedScores:
        """Return the scores of all `parts`, one behind the other."""
        others: list[PackedScores] = []
        columns: dict[Number, dict[int, _Column]] = {}
        for k, part in enumerate(parts):
            others.append(replace(part, numbers={}))
            for number, column in part.numbers.items():
                columns.setdefault(number, {})[k] = column
        if not others:
            return _packed([])
        numbers: dict[Number, _Column] = {}
        for number in list(columns):
            # Of parts that nobody else holds, each column is freed when it is joined.
            known = columns.pop(number)
            numbers[number] = np.concatenate(
                [
                    known[k] if k in known else np.full(len(part), np.nan, np.float16)
                    for k, part in enumerate(others)
                ]
            )
        return cls(
            *(_Coded[Any].joined([getattr(part, name) for part in others]) for name in _CODED),
            repeats=np.concatenate([part.repeats for part in others]),
            numbers=numbers,
            texts=_Texts.joined([part.texts for part in others]),
        )

    def taken(self, places: Places | NDArray[np.bool_]) -> PackedScores:
        """Return the scores at `places`, or those of which it is true."""
        places = np.flatnonzero(places) if places.dtype == np.bool_ else places.astype(np.intp)
        return PackedScores(
            *(getattr(self, name).taken(places) for name in _CODED),
            repeats=self.repeats[places],
            numbers={number: column[places] for number, column in self.numbers.items()},
            texts=self.texts.taken(places),
        )

    def with_values(
        self, places: Places, found: Sequence[Mapping[str, float | None]]
    ) -> PackedScores:
        """Return the scores with `found` added to the values of those at `places`, one each."""
        numbers = dict(self.numbers)
        for name in dict.fromkeys(chain.from_iterable(found)):
            having = [k for k, values in enumerate(found) if name in values]
            column = self.column("values", name)
            column[places[having]] = np.array([found[k][name] for k in having], dtype=np.float64)
            numbers["values", name] = _narrowed(column)
        shapes = dict(enumerate(self.shapes.names))
        codes = self.shapes.codes.tolist()
        told = [shapes[code] for code in codes]
        for place, values in zip(places.tolist(), found, strict=True):
            names = tuple(dict.fromkeys((*told[place].values, *values)))
            told[place] = told[place]._replace(values=names)
        return replace(self, numbers=numbers, shapes=_Coded.of(told))

    def joining(
        self, rename: Callable[[str], str], groups: Mapping[str, str], without: Container[str]
    ) -> PackedScores:
        """Return the scores under other names of their methods, with the group of each item that
        `groups` knows, and `without` some metrics.
        """

        def kept(names: Iterable[str]) -> tuple[str, ...]:
            return tuple(name for name in names if name not in without)

        shapes = (
            one._replace(values=kept(one.values), original_values=kept(one.original_values))
            for one in self.shapes.names
        )
        of_items = _Coded.of(groups.get(item, "") for item in self.items.names)
        return replace(
            self,
            methods=replace(self.methods, names=tuple(map(rename, self.methods.names))),
            groups=replace(of_items, codes=of_items.codes[self.items.codes]),
            shapes=replace(self.shapes, names=tuple(shapes)),
            numbers={
                (kind, name): column
                for (kind, name), column in self.numbers.items()
                if kind not in ("values", "original_values") or name not in without
            },
        )

    def group_of(self) -> dict[str, str]:
        """Return the group of each item of which a score tells it; the last one tells."""
        told = ~self.groups.those("")
        known = zip(self.items.codes[told].tolist(), self.groups.codes[told].tolist(), strict=True)
        return {self.items.names[k]: self.groups.names[of] for k, of in dict(known).items()}

    def item_repeats(self) -> Iterator[tuple[str, int]]:
        """Yield the item and the repeat of each score."""
        items = map(self.items.names.__getitem__, self.items.codes.tolist())
        return zip(items, self.repeats.tolist(), strict=True)

    def column(self, kind: Kind, name: str) -> Floats:
        """Return a number of each score, NaN where it has none."""
        known = self.numbers.get((kind, name))
        return np.full(len(self), np.nan) if known is None else known.astype(np.float64)

    def names(self, kind: Literal["values", "original_values", "cost"]) -> set[str]:
        """Return what at least one score lists in this field, with a number or None."""
        return {name for shape in self.shapes.used() for name in getattr(shape, kind)}

    @cached_property
    def failed(self) -> NDArray[np.bool_]:
        """Whether each score ended in an error."""
        return ~self.errors.those("")

    @property
    def abstained(self) -> NDArray[np.bool_]:
        """Whether the system of each score declined to answer."""
        return self.flags.those(*(flags for flags in self.flags.names if ABSTAINED in flags))

    @property
    def rewritten(self) -> NDArray[np.bool_]:
        """Whether each answer is another one than the original."""
        answer, original = (_TEXTS.index(name) for name in ("answer", "original"))
        texts = self.texts
        return (texts.begins[:, answer] != texts.begins[:, original]) | (
            texts.ends[:, answer] != texts.ends[:, original]
        )

    @cached_property
    def answer_words(self) -> Floats:
        """The words of each answer, NaN of an empty one."""
        return self._words("answer")

    @cached_property
    def original_words(self) -> Floats:
        """The words of each original answer, NaN of an empty one."""
        return self._words("original")

    def _words(self, text: str) -> Floats:
        place = _TEXTS.index(text)
        texts = (row[place] for row in self.texts.rows())
        counts = (float(word_count(one)) if one else np.nan for one in texts)
        return np.fromiter(counts, dtype=np.float64, count=len(self))

    def __len__(self) -> int:
        return len(self.repeats)

    @overload
    def __getitem__(self, index: int) -> ItemScore: ...
    @overload
    def __getitem__(self, index: slice) -> PackedScores: ...
    def __getitem__(self, index: int | slice) -> ItemScore | PackedScores:
        if isinstance(index, slice):
            return self.taken(np.arange(len(self))[index])
        return self.taken(np.array([range(len(self))[index]]))._made()[0]

    def __iter__(self) -> Iterator[ItemScore]:
        for begin in range(0, len(self), _PART):
            yield from self.taken(np.arange(begin, min(begin + _PART, len(self))))._made()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(ItemScore.__eq__, self, other))

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def _made(self) -> list[ItemScore]:
        """Return all of them as objects."""
        numbers: dict[int, Iterator[list[float | None]]] = {}
        for code in np.unique(self.shapes.codes).tolist():
            among = self.shapes.codes == code
            columns = [self.numbers[one][among] for one in self.shapes.names[code].numbers]
            table = np.array(columns).reshape(len(columns), int(among.sum())).T
            # Only NaN is not equal to itself.
            numbers[code] = ([n if n == n else None for n in row] for row in table.tolist())
        coded = zip(
            *(map(one.names.__getitem__, one.codes.tolist()) for one in self._unshaped()),
            strict=True,
        )
        return [
            _score(names, self.shapes.names[code], next(numbers[code]), repeat, texts)
            for names, code, repeat, texts in zip(
                coded, self.shapes.codes.tolist(), self.repeats.tolist(), self.texts.rows(),
                strict=True,
            )
        ]  # fmt: skip

    def _unshaped(self) -> list[_Coded[Any]]:
        return [getattr(self, name) for name in _CODED[:-1]]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> Any:
        def read(given: Any) -> PackedScores:
            checked = given if isinstance(given, cls) else _CHECKED.validate_python(given)
            return cls.of(checked)

        written = PlainSerializer(list, return_type=list[ItemScore])
        return handler.generate_schema(Annotated[Any, PlainValidator(read), written])


_CHECKED = TypeAdapter(list[ItemScore])
_CODED = ("items", "groups", "methods", "errors", "flags", "shapes")


def _packed(fields: Sequence[Mapping[str, Any]]) -> PackedScores:
    shapes = _Coded.of(
        _Shape(
            tuple(one["values"]),
            tuple(one["original_values"]),
            tuple(one["cost"]),
            tuple(one["spans"]),
            len(one["bleu"]),
        )
        for one in fields
    )
    numbers: dict[Number, Floats] = {}
    for code, shape in enumerate(shapes.names):
        places = np.flatnonzero(shapes.codes == code)
        rows = [_numbers(fields[place]) for place in places.tolist()]
        # None becomes NaN.
        for number, column in zip(shape.numbers, np.array(rows, dtype=np.float64).T, strict=True):
            numbers.setdefault(number, np.full(len(fields), np.nan))[places] = column
    return PackedScores(
        items=_Coded.of(one["item"] for one in fields),
        groups=_Coded.of(one["group"] for one in fields),
        methods=_Coded.of(one["method"] for one in fields),
        errors=_Coded.of(one["error"] for one in fields),
        flags=_Coded.of(tuple(one["flags"]) for one in fields),
        shapes=shapes,
        repeats=np.array([one["repeat"] for one in fields], dtype=np.intp),
        numbers={number: _narrowed(column) for number, column in numbers.items()},
        texts=_Texts.of(fields),
    )


def _narrowed(column: Floats) -> _Column:
    """Return the same numbers in as few bits as hold each of them: many are 0, 1 or counts."""
    for kind in (np.float16, np.float32):
        with np.errstate(over="ignore"):
            narrow = column.astype(kind)
        if np.array_equal(narrow, column, equal_nan=True):
            return narrow
    return column


def _numbers(fields: Mapping[str, Any]) -> list[float | None]:
    """Return all numbers of a score in the order of its shape."""
    return [
        *fields["values"].values(),
        *fields["original_values"].values(),
        *fields["cost"].values(),
        *chain.from_iterable(fields["spans"].values()),
        *fields["bleu"],
    ]


def _score(
    names: Sequence[Any],
    shape: _Shape,
    numbers: list[Any],
    repeat: int,
    texts: list[str],
) -> ItemScore:
    item, group, method, error, flags = names
    run, answer, original = texts
    left = iter(numbers)
    # They were checked before they were packed. `zip` asks for a name first, so that no number of
    # the next field is lost.
    return ItemScore.model_construct(
        _ALL_OF_SCORE,
        item=item,
        group=group,
        method=method,
        repeat=repeat,
        run=run,
        error=error,
        values=dict(zip(shape.values, left, strict=False)),
        original_values=dict(zip(shape.original_values, left, strict=False)),
        cost=dict(zip(shape.cost, left, strict=False)),
        spans={match: tuple(int(next(left)) for _ in range(3)) for match in shape.spans},
        bleu=tuple(map(int, left)),
        answer=answer,
        original=original,
        flags=flags,
    )
