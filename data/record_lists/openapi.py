"""What OpenAPI documents list: operations, parameters, responses and schemas, at the same places in all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

METHODS = frozenset(("get", "put", "post", "delete", "options", "head", "patch", "trace", "query"))
LISTS: Mapping[str, tuple[tuple[str, str], tuple[str, ...]]] = {
    "$.paths.*.*": (("operation", "operations"), ("path", "method")),
    "$.paths.*.*.parameters.*": (("operation parameter", "operation parameters"), ("path", "method")),
    "$.paths.*.*.responses.*": (("response", "responses"), ("path", "method", "status code")),
    "$.definitions.*": (("schema definition", "schema definitions"), ("name",)),
    "$.components.schemas.*": (("component schema", "component schemas"), ("name",)),
    "$.parameters.*": (("shared parameter", "shared parameters"), ("key",)),
    "$.components.parameters.*": (("component parameter", "component parameters"), ("key",)),
    "$.responses.*": (("shared response", "shared responses"), ("key",)),
    "$.components.responses.*": (("component response", "component responses"), ("key",)),
}
"""Patterns of record lists; what people call one record and several, and the map keys that lead to a record."""


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
