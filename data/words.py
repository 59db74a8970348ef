"""English for keys and headings: words of an identifier, singular and plural, names of fields and of records."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_OTHER_PARTS = re.compile(r"[^\W\d_]+|\d+")
_FOOTNOTE = re.compile(r"\s*\[(?:\d{1,3}|[a-z]|note \d{1,3})\]|\s*[¶§#]\Z")
_BRACKETED = re.compile(r"\s*\([^()]*\)\s*\Z")
_AFTER_NOUN = re.compile(
    r"\s(?:by|in|of|for|from|with|on|at|and|as|to|used|per|supported|available)\s.*", re.IGNORECASE
)
_LIST_OF = re.compile(
    r"\A(?:(?:a|the|complete|full|partial)\s)*(?:list|table|index|summary|overview)\s+of\s+(?:all\s+)?(?:the\s+)?", re.I
)
_LONGEST_NOUN = 4  # words


def word_set(text: str) -> frozenset[str]:
    """Words, told in one text."""
    return frozenset(text.split())


_IRREGULAR: Mapping[str, str] = {
    "person": "people",
    "child": "children",
    "man": "men",
    "woman": "women",
    "foot": "feet",
    "tooth": "teeth",
    "mouse": "mice",
    "analysis": "analyses",
    "basis": "bases",
    "crisis": "crises",
    "thesis": "theses",
    "hypothesis": "hypotheses",
    "diagnosis": "diagnoses",
    "synopsis": "synopses",
    "axis": "axes",
    "index": "indexes",
    "matrix": "matrices",
    "vertex": "vertices",
    "appendix": "appendices",
    "criterion": "criteria",
    "phenomenon": "phenomena",
    "curriculum": "curricula",
    "leaf": "leaves",
    "life": "lives",
    "half": "halves",
    "shelf": "shelves",
    "knife": "knives",
    "wife": "wives",
    "wolf": "wolves",
    "movie": "movies",
    "cookie": "cookies",
    "tie": "ties",
    "pie": "pies",
    "hero": "heroes",
    "potato": "potatoes",
    "tomato": "tomatoes",
    "echo": "echoes",
    "quiz": "quizzes",
    "alias": "aliases",
    "bias": "biases",
    "canvas": "canvases",
    "atlas": "atlases",
    "gas": "gases",
    "lens": "lenses",
    "use": "uses",
    "cause": "causes",
    "clause": "clauses",
    "house": "houses",
    "warehouse": "warehouses",
    "cache": "caches",
    "ache": "aches",
    "genus": "genera",
    "taxon": "taxa",
}
_SINGULAR = {plural: singular for singular, plural in _IRREGULAR.items()}
_SAME = word_set("series species news sheep fish aircraft equipment information software hardware data media")
_LONG = {
    "addr": "address",
    "amt": "amount",
    "avg": "average",
    "calc": "calculated",
    "cnt": "count",
    "coord": "coordinate",
    "coords": "coordinates",
    "curr": "current",
    "dept": "department",
    "desc": "description",
    "descr": "description",
    "dest": "destination",
    "dob": "date of birth",
    "elev": "elevation",
    "env": "environment",
    "hq": "headquarters",
    "img": "image",
    "lang": "language",
    "lat": "latitude",
    "lng": "longitude",
    "lon": "longitude",
    "loc": "location",
    "mag": "magnitude",
    "max": "maximum",
    "mfr": "manufacturer",
    "min": "minimum",
    "msg": "message",
    "nr": "number",
    "num": "number",
    "org": "organization",
    "orig": "original",
    "param": "parameter",
    "params": "parameters",
    "pct": "percent",
    "pop": "population",
    "pos": "position",
    "prev": "previous",
    "pub": "publication",
    "qty": "quantity",
    "ref": "reference",
    "refs": "references",
    "req": "request",
    "resp": "response",
    "src": "source",
    "str": "text",
    "std": "standard",
    "temp": "temperature",
    "tel": "telephone",
    "tz": "time zone",
    "val": "value",
    "ver": "version",
    "vol": "volume",
    "vuln": "vulnerability",
    "yr": "year",
}
_UPPER = {
    **dict.fromkeys(("id", "url", "uri", "doi", "api", "ip", "ssn", "isbn", "issn", "iso", "uuid", "guid", "sku"), ""),
    **dict.fromkeys(("html", "css", "json", "xml", "http", "https", "sql", "dns", "cve", "cvss", "cpu", "gpu"), ""),
    **dict.fromkeys(("ram", "usb", "gps", "pdf", "rgb", "nih", "uk", "us", "usa", "eu", "orcid", "naics", "psc"), ""),
    **dict.fromkeys(("nct", "uei", "duns", "pi", "cfda", "fips", "tas", "gid", "cpv", "sme", "qc", "imdb", "utc"), ""),
    "ids": "IDs",
    "urls": "URLs",
}
_SHORT_WORDS = word_set(
    "age air art bed box bus car cat city code cost cup date day dog end fee file form gap group hex host icon "
    "job key kind lap law link map mode name net note open page part path port rank rate role row run sex side "
    "size sort star sum tag task tax team term text tier time tone top town type unit user view way week year "
    "zone use new old no of in on to by at is as or and the for has was yes not low high max min red set ship sky "
    "sun web win set dam ode bid pin gas oil ice sea out due per via"
)
_NO_NOUNS = word_set("data metadata content info list array all exports default argument map table")
_UNITS = {
    "usd": "US dollars",
    "eur": "euros",
    "gbp": "pounds",
    "pct": "percent",
    "percent": "percent",
    "sqkm": "square kilometres",
    **{
        unit: unit
        for unit in ("km", "cm", "mm", "kg", "ms", "kb", "px", "bytes", "seconds", "minutes", "hours", "days")
    },
    **dict.fromkeys(("ft", "feet"), "feet"),
    **{unit: unit for unit in ("years", "metres", "meters", "miles", "mph", "kmh", "lbs", "oz", "degrees")},
    **{unit: unit.upper() for unit in ("mb", "gb", "tb")},
    "hz": "Hz",
    "khz": "kHz",
    "mhz": "MHz",
    "ghz": "GHz",
}
GENERIC = word_set(
    "name id ids code value type title text label count date url uri key description number status total amount "
    "start end raw content score class kind level category version size unit address email phone short long full "
    "min max minimum maximum year month day time begin finish first last abbreviation symbol language format "
    "source"
)
"""Words that say too little of a field inside an object, whose own name is added."""
_ENVELOPES = word_set(
    "properties attributes fields data info meta metadata details detail item items content value values node "
    "record object entry body payload results result x"
)


def words_of(key: str) -> list[str]:
    """The words of an identifier in lower case: camelCase, snake_case, hyphens and digits apart, abbreviations written
    out, acronyms in capitals."""
    parts = (_PARTS if key.isascii() else _OTHER_PARTS).findall(key)
    found: list[str] = []
    for part in parts:
        lower = part.lower()
        if lower == "struct" and found:
            continue
        if part.isdigit() and found and found[-1].lower() == "v":
            found[-1] = f"v{part}"
        elif lower in _UPPER:
            found.append(_UPPER[lower] or lower.upper())
        elif lower in _LONG:
            found.extend(_LONG[lower].split())
        elif len(part) > 1 and part.isupper() and len(parts) > 1 and not key.isupper():
            found.append(part)
        else:
            found.append(lower)
    return found


def field_name(path: Sequence[str], depth: int = 1) -> str:
    """What people call the field at `path`, by its last `depth` keys and, where those say too little, the one before.
    "" where no words can be made of it."""
    keys = [key for key in path if not key.isdecimal()]
    meaning = [key for key in keys[:-1] if key.lower() not in _ENVELOPES]
    words = words_of(keys[-1]) if keys else []
    taken = meaning[len(meaning) - depth + 1 :] if depth > 1 else []
    if depth == 1 and meaning and len(words) == 1 and words[0].lower() in GENERIC:
        taken = meaning[-1:]
    before = [word for key in taken for word in words_of(key)]
    while before and words and before[-1].lower() == words[0].lower():
        before.pop()
    if before:
        before[-1] = singular(before[-1])
    name = " ".join(_with_unit(before + words))
    return name.upper() if len(name) <= 3 and name.lower() not in _SHORT_WORDS else name


def heading_name(text: str) -> str:
    """What people call a column or label with this heading: the heading without colon, footnotes and characters that
    nobody sees, its first letter small where that is no proper name or acronym."""
    seen = "".join(c for c in text if unicodedata.category(c) not in ("Cf", "Cc") or c.isspace())
    plain = " ".join(_FOOTNOTE.sub("", seen).split()).rstrip(":").strip()
    first = plain.split(" ")[0]
    return plain[0].lower() + plain[1:] if len(first) > 1 and first[1:].islower() else plain


def nouns(named: str, shape: str) -> tuple[str, str]:
    """What people call one record and several, by the key, caption or heading of their list; entry and entries, of a
    table row and rows, where that names no things. Entries of a map are called by its name where that is a plural."""
    fallback = ("row", "rows") if shape == "table" else ("entry", "entries")
    if shape in ("objects", "entries"):
        words = words_of(named)
        if not words or len(words) > _LONGEST_NOUN or not words[-1].isalpha() or len(words[-1]) < 3:
            return fallback
        last = words[-1]
        one = singular(last)
        if last in _NO_NOUNS or ((len(words) > 1 or shape == "entries") and one == last):
            return fallback
        return " ".join([*words[:-1], one]), " ".join([*words[:-1], plural(one)])
    return _nouns_of_heading(named) or fallback


def _nouns_of_heading(text: str) -> tuple[str, str] | None:
    """The noun in a heading such as `List of rivers by length`; None if its last word is no plural."""
    plain = heading_name(_BRACKETED.sub("", _FOOTNOTE.sub("", text)))
    plain = _AFTER_NOUN.sub("", _LIST_OF.sub("", plain))
    words = plain.split()
    if not words or len(words) > _LONGEST_NOUN or not all(re.fullmatch(r"[A-Za-z][A-Za-z'-]*", word) for word in words):
        return None
    last = words[-1].lower()
    one = singular(last)
    if one == last or len(last) < 4:
        return None
    before = [word if word.isupper() else word.lower() for word in words[:-1]]
    return " ".join([*before, one]), " ".join([*before, plural(one)])


def singular(word: str) -> str:
    """The singular of an English noun; a word that is none stays."""
    lower = word.lower()
    if lower in _SINGULAR:
        return _SINGULAR[lower]
    if lower in _SAME or lower in _IRREGULAR or word.isupper() or len(word) < 4:
        return word
    if lower.endswith("ies"):
        return word[:-3] + "y"
    if lower.endswith(("sses", "xes", "shes", "oes")) and not lower.endswith(("shoes", "toes")):
        return word[:-2]
    if lower.endswith("ches"):
        return word[:-2]
    if lower.endswith("uses") and not lower.endswith(("auses", "ouses")):
        return word[:-2]
    if lower.endswith("s") and not lower.endswith(("ss", "us", "is", "ics", "js")):
        return word[:-1]
    return word


def plural(word: str) -> str:
    """The plural of an English noun in the singular."""
    lower = word.lower()
    if lower in _SAME or lower in _SINGULAR:
        return word
    if lower in _IRREGULAR:
        return _IRREGULAR[lower]
    if word.isupper():
        return word + "s"
    if lower.endswith("y") and lower[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    if lower.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    return word + "s"


def _with_unit(words: list[str]) -> list[str]:
    """`area km` becomes `area in km`."""
    if len(words) < 2 or words[-1].lower() not in _UNITS or words[-2] in ("in", "of", "per", "square", "sq"):
        return words
    return [*words[:-1], "in", _UNITS[words[-1].lower()]]
