"""Which fields of like records name them, can be asked for, tested, compared and counted.

1. A name is short text that is there and unique, or becomes so with one or two qualifiers; names come before keys,
   those before codes and numbers.
2. What is asked for is short, in most records, not the same everywhere and not part of the name; what may be added to
   a name is asked for where it is not.
3. A condition has values that some records share, a measure numbers with spread, a group few values that repeat.
4. Entries of a map are named by their keys alone, and have one field.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .catalog import KEYS, UNIT, VALUE, Field, FieldKind, FieldPath, Record, Role, numeric, value_at
from .record_lists.items import OPAQUE, is_scalar, leaves
from .record_lists.secret_strings import looks_secret
from .words import field_name, heading_name, singular, word_set

MAX_RECORDS = 20_000
"""Records, spread over all, by which fields are judged."""
MAX_FIELDS = 2_000
"""Fields that are judged; further ones are not offered."""
ASK_LENGTH, NAME_LENGTH, TEST_LENGTH = 80, 100, 50
"""Characters of an answer, a name, and a value in a condition."""
FEWEST_RECORDS = 3
_ASK_PRESENT, _NAME_PRESENT, _TEST_PRESENT = 0.5, 0.6, 0.5
_MEASURED = 20  # numbers that may be compared though most records have none
_DESCRIBED = 0.3  # of the records, the share that must have a unique description
_SAME_EVERYWHERE = 0.8
_NOT_UNIQUE = 6  # what a name loses in rank if none is unique
_ANSWERABLE = 0.5  # of the values, the share that must be able to answer a question
_NAMES = word_set("name title label headline summary caption subject fullname displayname heading")
_IDENTIFIERS = word_set("id ids key code number uuid guid doi isbn issn identifier accession url uri hash sha")
_ADDRESSES = word_set("url uri hash sha")
_NO_MEASURE = _IDENTIFIERS | word_set(
    "zip postal phone telephone fax year month day index version position order line port type status class"
)
_PLACES = word_set("year date country place city state type category group method version language")
_RANDOM = re.compile(
    r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9+/=_\-]{20,}\Z|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}\Z|[0-9a-f]{16,}\Z"
)
_DATE = re.compile(r"\d{4}-\d{2}(?:-\d{2}|\Z)|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{4}/\d{2}")
_PHRASE = re.compile(r"[^\W\d_]{3,}")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://|www\.|data:", re.IGNORECASE)
_MARKUP = re.compile(r"</?[a-zA-Z][^>]*>|&[a-z]+;|[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_EPOCH = 10**9
_NO_WORDS = re.compile(r"[^\w]*\Z")
_TORN = re.compile(r"(?:^|\s)[a-z]\s\d|\d\s[a-z](?:\s|$)")  # `r 8 unorm`: a code, and no words


@dataclass(frozen=True, eq=False)
class Column:
    """The values of one field: by record, those that are there."""

    path: FieldPath
    name: str
    kind: FieldKind
    values: Mapping[int, Any]
    present: float
    counts: Counter[Any]

    @property
    def unique(self) -> float:
        """Of the values, the share that occurs once."""
        return sum(times == 1 for times in self.counts.values()) / max(1, len(self.values))

    @property
    def length(self) -> int:
        """Characters that nine of ten values do not exceed."""
        sizes = sorted(len(str(value)) for value in self.values.values())
        return sizes[int(0.9 * (len(sizes) - 1))] if sizes else 0

    @property
    def last(self) -> str:
        """The last word of its name."""
        return self.name.split()[-1].lower() if self.name else ""


@dataclass(frozen=True)
class Profile:
    """What the fields of a table are good for; `refused` says why the records offer nothing, "" if they do. `left_out`
    are fields that are not offered, with the reason."""

    naming: Field | None = None
    qualifiers: tuple[Field, ...] = ()
    identity: FieldPath | None = None
    fields: tuple[Field, ...] = ()
    refused: str = ""
    left_out: Mapping[FieldPath, str] = field(default_factory=dict)


def profiled(
    records: Sequence[Record],
    *,
    headings: bool = False,
    numbers: bool = False,
    unclear: frozenset[FieldPath] = frozenset(),
    extra: Mapping[FieldPath, str] | None = None,
    counted: bool = True,
    by_facts: bool = False,
    entries: bool = False,
) -> Profile:
    """The roles of the records' fields. `headings`: keys are texts that people see, `numbers`: text may spell them;
    `unclear` fields are not offered; `extra` are names of facts and map keys that may name records, `by_facts` tells
    that nothing else does, `entries` that keys do; without `counted` no aggregation is offered, since the records are
    not all that people count."""
    fewest = 1 if by_facts else FEWEST_RECORDS
    if len(records) < fewest:
        return Profile(refused=f"it has {len(records)} records, fewer than {fewest}")
    step = -(-len(records) // MAX_RECORDS)
    sample = records[::step]
    left_out = dict.fromkeys(unclear, "its text is not the same to all readers")
    columns = _columns(sample, headings, numbers, left_out)
    facts = [
        _column(path, name, {i: v for i, r in enumerate(sample) if _there(v := value_at(r, path))}, len(sample))
        for path, name in (extra or {}).items()
    ]
    facts = [fact for fact in facts if fact is not None]
    keyed = [fact for fact in facts if fact.path[0] == KEYS]
    named = [] if by_facts or entries else columns
    naming = _naming(named, keyed if entries else facts, len(sample), headings)
    if naming is None:
        return Profile(refused="no field names its records", left_out=left_out)
    qualifiers = _qualifiers(naming, named, facts, len(sample))
    described = _described((naming, *qualifiers), len(sample))
    if described < _DESCRIBED or described * len(sample) < min(2, fewest):
        return Profile(refused="no field names its records uniquely", left_out=left_out)
    fields = _offered([*keyed, *columns], naming, qualifiers, len(sample), counted, left_out)
    if not any("ask" in offered.roles or entries for offered in fields):
        return Profile(refused="nothing in its records can be asked for", left_out=left_out)
    identity = None if by_facts or entries else _identity(columns, naming, len(sample))
    return Profile(_field(naming), tuple(map(_field, qualifiers)), identity, fields, "", left_out)


def answerable(value: Any) -> bool:
    """Whether a single value can be an answer: short, in one line, readable, nothing secret."""
    if not is_scalar(value) or isinstance(value, bool):
        return False
    text = str(value)
    if not text.strip() or len(text) > ASK_LENGTH or _MARKUP.search(text) or _URL.match(text):
        return False
    return not (_RANDOM.match(text) or looks_secret("", value)) if isinstance(value, str) else True


def _columns(sample: Sequence[Record], headings: bool, numbers: bool, left_out: dict[FieldPath, str]) -> list[Column]:
    values: dict[FieldPath, dict[int, Any]] = defaultdict(dict)
    for i, record in enumerate(sample):
        for path, value in leaves(record):
            if path[0] in (UNIT, KEYS) or path in left_out:
                continue
            if value is OPAQUE:
                left_out[path] = "its values are not read alike"
                values.pop(path, None)
            elif _there(value) and (path in values or len(values) < MAX_FIELDS):
                values[path][i] = value
    columns: list[Column] = []
    for path, held in values.items():
        name = heading_name(path[0]) or "name" if headings else field_name(path)
        column = _column(path, name, held, len(sample), numbers)
        reason = "its values are of several kinds" if column is None else _fault(path, column)
        if column is None or reason:
            left_out[path] = reason
        else:
            columns.append(column)
    return _told_apart(columns, headings, left_out)


def _fault(path: FieldPath, column: Column) -> str:
    if (path[-1][:1] in "$@" and path != (VALUE,)) or path[-1] == "__proto__":
        return "its key is no word"
    if _NO_WORDS.match(column.name) or _TORN.search(column.name):
        return "its key has no words"
    if any(looks_secret(path[-1], value) for value in column.values.values()):
        return "it holds what looks like a secret"
    return ""


def _told_apart(columns: list[Column], headings: bool, left_out: dict[FieldPath, str]) -> list[Column]:
    """Longer names where two fields are called alike; of those that stay alike only one is offered that lies in the
    record itself and not in something inside it: people would mean that one."""
    for depth in (2, 3, 4):
        alike = Counter(map(_said, columns))
        if headings or max(alike.values(), default=0) < 2:
            break
        columns = [_renamed(c, field_name(c.path, depth)) if alike[_said(c)] > 1 else c for c in columns]
    alike = Counter(map(_said, columns))
    outer = Counter(_said(column) for column in columns if len(column.path) == 1)
    clear = {c for c in columns if alike[_said(c)] == 1 or outer[_said(c)] == len(c.path) == 1}
    left_out.update({c.path: "another field has the same name" for c in columns if c not in clear})
    return [column for column in columns if column in clear]


def _said(column: Column) -> str:
    """The name as people hear it: "reference count" and "references count" are one."""
    return " ".join(singular(word) for word in column.name.casefold().split())


def _renamed(column: Column, name: str) -> Column:
    return Column(column.path, name, column.kind, column.values, column.present, column.counts)


def _column(path: FieldPath, name: str, held: Mapping[int, Any], total: int, numbers: bool = False) -> Column | None:
    kind = _kind(held.values(), numbers)
    if kind is None:
        return None
    if kind == "list":
        counts = Counter(item for value in held.values() for item in dict.fromkeys(value))
    else:
        counts = Counter(_folded(value) for value in held.values())
    return Column(path, name, kind, held, len(held) / total, counts)


def _kind(values: Any, numbers: bool) -> FieldKind | None:
    kinds: set[FieldKind | None] = {_kind_of(value) for value in values}
    kind = kinds.pop() if len(kinds) == 1 else None
    return "number" if kind == "text" and numbers and all(numeric(value) is not None for value in values) else kind


def _kind_of(value: Any) -> FieldKind | None:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return "list"
    return None


def _naming(columns: Sequence[Column], facts: Sequence[Column], total: int, headings: bool) -> Column | None:
    """The field that names records best."""
    best: tuple[float, int, Column] | None = None
    for place, column in enumerate((*facts, *columns)):
        usable = column.kind in ("text", "number") and column.present >= _NAME_PRESENT
        if not usable or column.length > NAME_LENGTH or not all(map(_names_something, column.values.values())):
            continue
        rank = _rank(column, first=headings and bool(columns) and column is columns[0])
        if rank is None:
            continue
        rank += _NOT_UNIQUE * (1 - column.unique)
        if best is None or rank < best[0]:
            best = rank, place, column
    return best[2] if best is not None and (best[2].unique > 0 or total > 1) else None


def _rank(column: Column, first: bool) -> float | None:
    """How far from a name people would use: titles and names 0, map keys 1, names of something else in the record and
    facts of the unit 1.5, identifiers 2, other words 2.5; random strings, dates and numbers last; None for what names
    nothing."""
    depth = 0.2 * (len(column.path) - 1) + (0.5 if column.length > 60 else 0)
    if column.kind == "number":
        whole = all(isinstance(value, int) for value in column.values.values())
        return depth + (4 if whole and column.last in _IDENTIFIERS else 8)
    if column.path[0] in (KEYS, UNIT):
        return 1.0 if column.path[0] == KEYS else 1.5
    values = list(column.values.values())
    if _most(_DATE.match, values):
        return depth + 7
    if _most(_RANDOM.match, values):
        return depth + 7.5
    if first or column.last in _NAMES:
        return depth + (1.5 if column.last == "name" and column.path[:-1] and " " in column.name else 0)
    if column.last in _IDENTIFIERS:
        return depth + 2
    return depth + 2.5 if _most(_PHRASE.search, values) else None


def _most(test: Callable[[str], Any], values: Sequence[str]) -> bool:
    return sum(1 for value in values if test(value)) > len(values) / 2


def _names_something(value: Any) -> bool:
    text = str(value)
    return bool(text.strip()) and not _MARKUP.search(text) and not _URL.match(text) and not looks_secret("", value)


def _qualifiers(naming: Column, columns: Sequence[Column], facts: Sequence[Column], total: int) -> tuple[Column, ...]:
    """Up to three fields that make names unique, those first that people would add."""
    chosen: tuple[Column, ...] = ()
    rest = [c for c in (*facts, *columns) if c is not naming and _qualifies(c)]
    rest.sort(key=lambda c: (c.path[0] not in (UNIT, KEYS), c.last not in _PLACES, c.kind != "text", len(c.path)))
    for _ in range(3):
        share = _described((naming, *chosen), total)
        if share == 1 or not rest:
            break
        gains = [(_described((naming, *chosen, c), total) - share, -i) for i, c in enumerate(rest[:40])]
        gain, place = max((round(gain, 1), place) for gain, place in gains)
        if gain <= 0:
            gain, place = max(gains)
        if gain <= 0:
            break
        chosen = (*chosen, rest.pop(-place))
    return chosen


def _qualifies(column: Column) -> bool:
    short = column.length <= TEST_LENGTH and all(map(_names_something, column.values.values()))
    return column.kind in ("text", "number") and column.present >= _NAME_PRESENT and short and len(column.counts) > 1


def _described(columns: Sequence[Column], total: int) -> float:
    """Of all records, the share that these fields describe uniquely."""
    keys = [tuple(_folded(column.values.get(i)) for column in columns) for i in range(total)]
    counts = Counter(keys)
    return sum(counts[key] == 1 and key[0] is not None for key in keys) / total


def _identity(columns: Sequence[Column], naming: Column, total: int) -> FieldPath | None:
    """The field that tells all records apart."""
    able = [c for c in columns if c.kind in ("text", "number") and len(c.values) == total and c.unique == 1]
    able.sort(key=lambda c: (c.last not in _IDENTIFIERS, c.last in _ADDRESSES, len(c.path), c is not naming))
    return able[0].path if able else None


def _offered(
    columns: Sequence[Column],
    naming: Column,
    qualifiers: Sequence[Column],
    total: int,
    counted: bool,
    left_out: dict[FieldPath, str],
) -> tuple[Field, ...]:
    fields: list[Field] = []
    for column in columns:
        if column is naming:
            continue
        roles: set[Role] = set()
        others = [qualifier for qualifier in qualifiers if qualifier is not column]
        if _can_be_asked(column, naming, others):
            roles.add("ask")  # a qualifier too: of records whose names need none
        if counted:
            roles |= _aggregated(column, total)
        if roles:
            fields.append(_field(column, frozenset(roles)))
        elif column not in qualifiers:
            left_out[column.path] = _unfit(column)
    return tuple(fields)


def _unfit(column: Column) -> str:
    if column.present < _ASK_PRESENT:
        return "few records have it"
    if column.length > ASK_LENGTH:
        return "its values are too long"
    return "it is the same everywhere, or no question comes from it"


def _can_be_asked(column: Column, naming: Column, qualifiers: Sequence[Column]) -> bool:
    if column.kind not in ("text", "number") or column.present < _ASK_PRESENT:
        return False
    if len(column.counts) < 2 and len(column.values) > 1:
        return False
    if len(column.values) > 1 and max(column.counts.values()) > _SAME_EVERYWHERE * len(column.values):
        return False
    values = list(column.values.values())
    if sum(map(answerable, values)) < _ANSWERABLE * len(values):
        return False
    if all(_same_word(value, column.path[-1]) for value in values):
        return False
    if column.path == (VALUE,):
        return sum(_same_word(value, naming.values.get(i)) for i, value in column.values.items()) <= 0.5 * len(values)
    shown = sum(_derivable(value, naming.values.get(i)) for i, value in column.values.items())
    shown += sum(_derivable(value, q.values.get(i)) for q in qualifiers for i, value in column.values.items())
    return shown <= 0.5 * len(values)


def _derivable(value: Any, known: Any) -> bool:
    """Whether the name says the value already."""
    if known is None:
        return False
    a, b = _words(value), _words(known)
    return bool(a) and (a in b or b in a) if min(len(a), len(b)) > 3 else a == b


def _same_word(value: Any, key: Any) -> bool:
    """Whether a value is its key, written in another way: `clamp-to-edge` and `ClampToEdge`."""
    return _words(value).replace(" ", "") == _words(key).replace(" ", "")


def _aggregated(column: Column, total: int) -> set[Role]:
    roles: set[Role] = set()
    distinct, largest = len(column.counts), max(column.counts.values(), default=0)
    few = column.present < _TEST_PRESENT and (column.kind != "number" or len(column.values) < _MEASURED)
    if few or distinct < 2:
        return roles
    repeated = 3 <= distinct <= max(3, total // 2) and column.present >= 0.8
    if column.kind == "number":
        if column.path == (VALUE,):  # few numbers that repeat may be counted
            roles |= {"condition", "group"} if repeated and largest >= 2 else {"condition"}
        if distinct >= min(5, max(3, total // 4)) and not _NO_MEASURE & set(column.name.lower().split()):
            roles |= {"condition", "measure"} if not _is_epoch(column) else set()
        return roles
    if column.kind == "list":
        largest = max((times for times in column.counts.values() if times <= 0.95 * total), default=0)
    short = all(len(str(value)) <= TEST_LENGTH and _names_something(value) for value in column.counts)
    if short and largest >= 2 and distinct <= max(2, 0.7 * total) and largest <= 0.95 * total:
        roles.add("condition")
        if column.kind != "list" and repeated:
            roles.add("group")
    return roles


def _is_epoch(column: Column) -> bool:
    return all(isinstance(value, int) and abs(value) > _EPOCH for value in column.values.values())


def _field(column: Column, roles: frozenset[Role] = frozenset()) -> Field:
    return Field(column.path, column.name, column.kind, roles)


def _there(value: Any) -> bool:
    return value is not None and value != "" and value != []


def _folded(value: Any) -> Any:
    return " ".join(value.casefold().split()) if isinstance(value, str) else value


def _words(value: Any) -> str:
    return re.sub(r"[\W_]+", " ", str(value).casefold()).strip()
