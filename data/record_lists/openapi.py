"""What OpenAPI documents list: operations, parameters, responses and schemas, at the same places in all of them."""

from __future__ import annotations

from typing import Any

METHODS = frozenset(("get", "put", "post", "delete", "options", "head", "patch", "trace", "query"))
LISTS: tuple[tuple[str, str], ...] = (
    ("$.paths.*.*", "operations"),
    ("$.paths.*.*.parameters.*", "operation parameters"),
    ("$.paths.*.*.responses.*", "responses"),
    ("$.definitions.*", "schemas"),
    ("$.components.schemas.*", "schemas"),
    ("$.parameters.*", "shared parameters"),
    ("$.components.parameters.*", "shared parameters"),
    ("$.responses.*", "shared responses"),
    ("$.components.responses.*", "shared responses"),
)
"""Patterns of record lists, and what people call the records."""


def is_openapi(value: Any) -> bool:
    """Whether a document describes an interface as OpenAPI does, in version 2 or 3."""
    if not isinstance(value, dict) or not isinstance(value.get("paths"), dict):
        return False
    return "swagger" in value or "openapi" in value


def fault_of(pattern: str, keys: tuple[str, ...]) -> str:
    """Why an object at an operation's place is none; "" if it is one."""
    if pattern.startswith("$.paths.*.*") and keys[1] not in METHODS:
        return f"{keys[1]} stands among the operations and is none"
    return ""
