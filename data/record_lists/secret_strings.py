"""Strings that look like secrets: private keys, access tokens, passwords. What holds one is left out."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

_KNOWN = (
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY")),
    ("an access key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("an access token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})")),
    ("an access token", re.compile(r"\b(?:xox[abprs]-[A-Za-z0-9-]{10,}|glpat-[A-Za-z0-9_-]{20,})")),
    ("an access token", re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}")),
    ("a secret key", re.compile(r"\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|\bsk-[A-Za-z0-9]{32,}")),
    ("an access key", re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b")),
    ("a password", re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/:@]{3,}@")),
)
_ANY_KNOWN = re.compile(r"-----BEGIN|A[KS]IA|gh[pousr]_|github_pat_|xox[abprs]-|glpat-|eyJ|[sr]k[_-]|AIza|://[^\s/@]*@")
_NAMES = re.compile(
    r"(?:passw(?:or)?d|passphrase|secret|api_?key|private_?key|access_?key|auth_?token|access_?token)\Z", re.I
)
_RANDOM = re.compile(r"[A-Za-z0-9+/=_\-.]{16,}\Z")
_LEAST_ENTROPY = 3.3  # bits a character; words and paths have less of digits and cases


def looks_secret(key: str, value: Any) -> str:
    """What a string looks like, "" if like nothing secret; `key` names it."""
    if not isinstance(value, str) or len(value) < 8:
        return ""
    if _ANY_KNOWN.search(value):
        for what, pattern in _KNOWN:
            if pattern.search(value):
                return what
    if not _RANDOM.match(value) or not _NAMES.search(re.sub(r"[-\s]", "_", key)):
        return ""
    return "a password or key" if _is_random(value) else ""


def secret_in(value: Any) -> str:
    """What the first secret in a value looks like, "" if there is none."""
    walk: list[tuple[str, Any]] = [("", value)]
    while walk:
        key, here = walk.pop()
        if isinstance(here, dict):
            walk.extend(reversed([(str(name), inside) for name, inside in here.items()]))
        elif isinstance(here, list):
            walk.extend(reversed([(key, inside) for inside in here]))
        elif found := looks_secret(key, here):
            return found
    return ""


def _is_random(value: str) -> bool:
    if not (any(c.isdigit() for c in value) and any(c.isalpha() for c in value)):
        return False
    shares = [times / len(value) for times in Counter(value).values()]
    return -sum(share * math.log2(share) for share in shares) >= _LEAST_ENTROPY
