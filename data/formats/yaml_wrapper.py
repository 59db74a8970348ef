"""What lets a slice of a YAML document be read where it stands: keys, indentation, brackets, directives.

Everything is the document's own text at its own columns, so the lines of the slice need no change. Keys are put back
in block style, where entries are told from each other by indentation; brackets in flow style.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from .yaml_index import Index, YamlNode

_LINE = re.compile(r"[\n\r\x85\u2028\u2029]")


class Wrapper:
    """Heads and tails of opened nodes of one document."""

    def __init__(self, text: str, index: Index) -> None:
        self._text, self._index = text, index
        ends = index.block_scalar_ends.tolist()
        self._cut_lines = {end for end in ends if _LINE.match(text, end) and not _LINE.match(text, end - 1)}

    def around(self, chain: Sequence[YamlNode], new: bool, start: int, end: int) -> tuple[str, str]:
        """What stands before and after `text[start:end]`, children of the last of `chain`; each of the chain is the
        parent of the next. `new` where none of them was shown before: their comments, anchors and tags are told."""
        prefix, tails = "", []
        if chain and not _is_document(chain[0]) and chain[0].kind != "stream":
            prefix = self._directives(chain[0].document)
        for node in chain:
            if node.kind != "stream":
                prefix = self._head(prefix, node, new, outermost=node is chain[0])
                tails.append(self._tail(node, new, outermost=node is chain[0]))
        if not chain or chain[-1].kind == "stream":
            prefix = " " * self._index.column(start)
        elif not chain[-1].flow:
            prefix = _at_column(prefix, self._index.column(self._first_proper(chain[-1])))
        elif self._text.startswith("#", start):
            prefix += " "
        return prefix, self._suffix(tails, end)

    def _suffix(self, tails: list[str], end: int) -> str:
        suffix = "\n" if end in self._cut_lines else ""
        commented, fresh = self._ends_comment(end), bool(suffix or _LINE.match(self._text, end - 1))
        for tail in filter(None, reversed(tails)):
            suffix += f"\n{tail}" if not fresh and (commented or tail[0] not in "]}") else tail
            commented, fresh = "#" in tail, False
        return suffix

    def _head(self, before: str, node: YamlNode, new: bool, outermost: bool) -> str:
        """`before` with what stands before the node's children after it."""
        value = int(self._index.events.starts[node.event])
        bracketed = bool(self._index.bracketed[node.event])
        inside = int(self._index.events.ends[node.event]) if bracketed else self._first_start(node)
        parent = node.parent
        if _is_document(node):
            head = self._text[node.start : inside] if new else self._directives(node.document)
            if not new:
                head += self._text[value:inside] if bracketed else self._index.properties(node.event)
            before = before.rstrip() + "\n" if before else ""
        elif isinstance(parent, YamlNode) and not parent.flow:
            before = _at_column(before, self._index.column(node.proper))
            head = self._text[node.start if new else node.proper : inside]
        elif outermost:
            comments = self._text[node.start : node.proper] if new else ""
            head = comments + (self._text[value:inside] if bracketed else "{")
        else:
            head = self._text[node.start : inside]
        solid = head.rstrip()
        if not node.flow and _LINE.search(head, len(solid)):
            head = solid
        return f"{before} {head}" if head.startswith("#") and before.endswith(("{", "[")) else before + head

    def _tail(self, node: YamlNode, new: bool, outermost: bool) -> str:
        """What closes the node, with the comments after that."""
        index, number = self._index, int(self._index.collection[node.event])
        stop = int(index.stop[number])
        if index.bracketed[node.event]:
            closed = int(index.events.ends[index.order[stop]])
            tail = "}" if node.kind == "object" else "]"
        else:
            closed = int(index.entry_ends[stop - 1])
            tail = "}" if node.flow and outermost else ""
        after = self._text[closed : node.end]
        if not new or "#" not in after:
            return tail
        return tail + after.rstrip() if tail else after.strip()

    def _directives(self, document: int) -> str:
        """The document's directives down to its `---`, where it has any."""
        event = self._index.documents[document]
        start, end = int(self._index.events.starts[event]), int(self._index.events.ends[event])
        return self._text[start:end] + "\n" if self._text.startswith("%", start) else ""

    def _first_start(self, node: YamlNode) -> int:
        return int(self._index.entry_starts[self._index.first[self._index.collection[node.event]]])

    def _first_proper(self, node: YamlNode) -> int:
        return int(self._index.proper[self._index.first[self._index.collection[node.event]]])

    def _ends_comment(self, end: int) -> bool:
        ends = self._index.comment_ends
        at = int(np.searchsorted(ends, end))
        return at < len(ends) and int(ends[at]) == end


def _is_document(node: YamlNode) -> bool:
    return node.kind != "stream" and (node.parent is None or node.parent.kind == "stream")


def _at_column(text: str, column: int) -> str:
    """The text carried on to a column: on its last line if that ends there in a blank or is empty, else on a new
    line."""
    last = text[text.rfind("\n") + 1 :]
    if not last or (len(last) == column and last[-1] in " \t"):
        return text + " " * (column - len(last))
    return f"{text}\n{' ' * column}"
