"""Turns the JSON of a server into the classes of ``sandboxer.models``."""

from __future__ import annotations

import dataclasses
import functools
import types
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Model = TypeVar("Model")


def decode(model: type[Model], value: Any) -> Model:
    """Fields that the server does not send are None; fields that this release does not know are dropped."""
    return _decode(model, value)  # type: ignore[no-any-return]


def decode_all(model: type[Model], values: list[Any]) -> list[Model]:
    return [decode(model, value) for value in values]


def _decode(kind: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return _decode_object(kind, value)
    if isinstance(value, list):
        [item] = get_args(_choice(kind, list)) or [Any]
        return [_decode(item, one) for one in value]
    return value


def _decode_object(kind: Any, value: dict[str, Any]) -> Any:
    chosen = _choice(kind, dict)
    if dataclasses.is_dataclass(chosen) and isinstance(chosen, type):
        # A keyword of Python, such as `from`, has an underscore at its end.
        fields = {name: _decode(hint, value.get(name.rstrip("_"))) for name, hint in _hints(chosen).items()}
        return chosen(**fields)
    arguments = get_args(chosen)
    return {key: _decode(arguments[1], one) for key, one in value.items()} if arguments else value


def _choice(kind: Any, container: type) -> Any:
    """The part of a union that an object or a list belongs to."""
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    for part in get_args(kind):
        if (get_origin(part) or part) is container or (container is dict and dataclasses.is_dataclass(part)):
            return part
    return Any


@functools.cache
def _hints(model: type) -> dict[str, Any]:
    return get_type_hints(model)
