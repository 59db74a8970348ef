"""Records of documents: where they lie, what they say, and which questions they are good for.

`find` discovers the record lists of one document, `select` reads what a pattern means, `tables` turns units into tables
with names, kinds and roles of their fields; `examined` says also what is left out and why.
"""

from __future__ import annotations

from .record_lists.finding import find, find_in, read, readings, select
from .record_lists.items import spelling
from .record_lists.lists import RecordList
from .tables import Examined, LeftOut, examined, tables
from .unit_lists import page_of

__all__ = [
    "Examined",
    "LeftOut",
    "RecordList",
    "examined",
    "find",
    "find_in",
    "page_of",
    "read",
    "readings",
    "select",
    "spelling",
    "tables",
]
