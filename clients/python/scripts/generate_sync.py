"""Writes sandboxer/_sync.py: for each asynchronous class one without ``async``, with the same methods and types.

``python scripts/generate_sync.py`` writes the file; with ``--check`` it only compares.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "sandboxer"
#: Each class comes after those that it names.
SOURCES = {
    "_process.py": ["AsyncSandboxProcess"],
    "_files.py": ["AsyncSandboxFiles"],
    "_interpreter.py": ["AsyncInterpreter"],
    "_snapshots.py": ["AsyncSnapshots"],
    "_images.py": ["AsyncImages"],
    "_client.py": ["AsyncSandboxer"],
    "_ports.py": ["AsyncForwardedPort"],
    "_session.py": ["AsyncSandboxSession"],
    "_sandbox.py": ["AsyncSandbox"],
}
CLASSES = [name for names in SOURCES.values() for name in names]
#: The streams of asyncio are of no use without it.
LEFT_OUT = {"connect_port"}
#: Classes that users make themselves; the others come from a method.
WITH_CONSTRUCTOR = {"AsyncSandboxer"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> int:
    text = generate()
    target = PACKAGE / "_sync.py"
    if "--check" in sys.argv:
        return 0 if target.read_text() == text else 1
    target.write_text(text)
    return 0


def generate() -> str:
    imports: dict[str, set[str]] = {}
    bodies = []
    for file, names in SOURCES.items():
        tree = ast.parse((PACKAGE / file).read_text())
        bodies += [sync_class(node) for node in tree.body if isinstance(node, ast.ClassDef) and node.name in names]
        for name, module in imported(tree, file).items():
            imports.setdefault(module, set()).add(name)
    return assemble("\n\n\n".join(bodies), imports)


def imported(tree: ast.Module, file: str) -> dict[str, str]:
    """Where each name of a module comes from: its own, or what it imports."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            for alias in node.names:
                found[alias.name] = f".{node.module}" if node.level else str(node.module)
    for top in tree.body:
        if isinstance(top, ast.ClassDef):
            found[top.name] = f".{file.removesuffix('.py')}"
        elif isinstance(top, ast.Assign) and isinstance(top.targets[0], ast.Name):
            found[top.targets[0].id] = f".{file.removesuffix('.py')}"
    return found


def assemble(body: str, imports: dict[str, set[str]]) -> str:
    used = set(re.findall(r"\w+", re.sub(r'"""[\s\S]*?"""', "", body)))
    typing_only = {"Self", "Unpack"}
    lines = [
        '"""The SDK without ``async``. Generated from the asynchronous classes by scripts/generate_sync.py."""',
        "",
        "from __future__ import annotations",
        "",
        "import builtins",
    ]
    groups: dict[str, set[str]] = {}
    for module, names in imports.items():
        for name in (name for name in names & used - typing_only if name[0].isupper()):
            groups.setdefault(module, set()).add(name)
    groups.setdefault("collections.abc", set()).update({"Iterator"})
    groups.setdefault("typing", set()).update({"TYPE_CHECKING", "Any"})
    groups["typing"] -= {"TypeVar", "cast", "IO"}
    groups.setdefault("._portal", set()).update({"iterate", "run"})
    for module in sorted(groups, key=lambda name: (name.startswith("."), name)):
        if module.startswith(".") and not lines[-1].startswith((" ", "from .", ")")):
            lines.append("")
        lines += import_lines(module, sorted(groups[module], key=sort_key))
    lines += ["", "if TYPE_CHECKING:", f"    from typing_extensions import {', '.join(sorted(typing_only & used))}"]
    return "\n".join(lines) + "\n\n\n" + body + "\n"


def sort_key(name: str) -> tuple[int, str]:
    """Constants, classes, functions: as ruff sorts imports."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def import_lines(module: str, names: list[str]) -> list[str]:
    line = f"from {module} import {', '.join(names)}"
    return [line] if len(line) <= 120 else [f"from {module} import (", *(f"    {name}," for name in names), ")"]


def sync_class(node: ast.ClassDef) -> str:
    name = sync_name(node.name)
    parts = [f'class {name}:\n    """{ast.get_docstring(node, clean=False)}"""', f"    _async: {node.name}"]
    constructor = next(part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__")
    if node.name in WITH_CONSTRUCTOR:
        parts.append(
            f"    def __init__({sync_text(ast.unparse(constructor.args))}) -> None:\n"
            f"        self._async = {node.name}({', '.join(arguments(constructor))})"
        )
    parts.append(
        f"    @classmethod\n    def _of(cls, inner: {node.name}) -> Self:\n"
        "        made = cls.__new__(cls)\n        made._async = inner\n        return made"
    )
    source = comments(node)
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            parts.append(attribute(part.target.id, part.annotation, source.get(part.target.id)))
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)) and part.name not in LEFT_OUT:
            if part.name in ("__aenter__", "__aexit__"):
                parts.append(context(part))
            elif not part.name.startswith("_"):
                parts.append(method(part, node.name))
    return "\n\n".join(parts)


def comments(node: ast.ClassDef) -> dict[str, str]:
    """The comments above the attributes of a class."""
    file = next(file for file, names in SOURCES.items() if node.name in names)
    text = (PACKAGE / file).read_text()
    return {name: said for said, name in re.findall(r"^    #: (.*)\n    (\w+):", text, re.MULTILINE)}


def attribute(name: str, annotation: ast.expr, said: str | None) -> str:
    type_text = ast.unparse(annotation)
    doc = f'        """{said}"""\n' if said else ""
    return (
        f"    @property\n    def {name}(self) -> {sync_text(type_text)}:\n{doc}"
        f"        return {wrapped(type_text, f'self._async.{name}')}"
    )


def context(node: Function) -> str:
    if node.name == "__aenter__":
        return "    def __enter__(self) -> Self:\n        return self"
    return (
        "    def __exit__(\n        self,\n        kind: type[BaseException] | None,\n"
        "        error: BaseException | None,\n        traceback: TracebackType | None,\n    ) -> None:\n"
        "        run(self._async.__aexit__(kind, error, traceback))"
    )


def method(node: Function, owner: str) -> str:
    returns = ast.unparse(node.returns) if node.returns is not None else "None"
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    lines = [f"    @{decorator}" for decorator in decorators]
    lines += signature(node.name, parameters(node), sync_text(returns))
    if (said := ast.get_docstring(node, clean=False)) is not None:
        lines.append(f'        """{said}"""')
    inner = owner if "classmethod" in decorators else "self._async"
    call = f"{inner}.{node.name}({', '.join(arguments(node))})"
    if "property" in decorators:
        lines.append(f"        return {wrapped(returns, f'{inner}.{node.name}')}")
    elif returns.startswith("AsyncIterator["):
        item = returns.removeprefix("AsyncIterator[").removesuffix("]")
        made = wrapped(item, "item")
        lines.append(
            f"        return iterate({call})"
            if made == "item"
            else f"        return ({made} for item in iterate({call}))"
        )
    elif isinstance(node, ast.FunctionDef):
        lines.append(f"        return {wrapped(returns, call)}")
    elif returns == "None":
        lines.append(f"        run({call})")
    else:
        lines.append(f"        return {wrapped(returns, f'run({call})')}")
    return "\n".join(lines)


def signature(name: str, given: list[str], returns: str) -> list[str]:
    line = f"    def {name}({', '.join(given)}) -> {returns}:"
    if len(line) <= 120:
        return [line]
    return [f"    def {name}(", *(f"        {one}," for one in given), f"    ) -> {returns}:"]


def parameters(node: Function) -> list[str]:
    found = node.args
    defaults = [None] * (len(found.args) - len(found.defaults)) + list(found.defaults)
    given = [parameter(one, default) for one, default in zip(found.args, defaults, strict=True)]
    if found.kwonlyargs:
        given += [
            "*",
            *(parameter(one, default) for one, default in zip(found.kwonlyargs, found.kw_defaults, strict=True)),
        ]
    if found.kwarg is not None:
        given.append(f"**{parameter(found.kwarg, None)}")
    return given


def parameter(one: ast.arg, default: ast.expr | None) -> str:
    typed = one.arg if one.annotation is None else f"{one.arg}: {sync_text(ast.unparse(one.annotation))}"
    if default is None:
        return typed
    value = ast.unparse(default).replace("'", '"')
    return f"{typed} = {value}" if one.annotation is not None else f"{typed}={value}"


def arguments(node: Function) -> list[str]:
    """As they are passed on; a class of ours is unwrapped."""
    plain = [unwrapped(one) for one in node.args.args if one.arg not in ("self", "cls")]
    named = [f"{one.arg}={unwrapped(one)}" for one in node.args.kwonlyargs]
    return [*plain, *named, *([] if node.args.kwarg is None else [f"**{node.args.kwarg.arg}"])]


def unwrapped(one: ast.arg) -> str:
    text = "" if one.annotation is None else ast.unparse(one.annotation)
    if not any(re.search(rf"\b{name}\b", text) for name in CLASSES):
        return one.arg
    if text.startswith("Sequence["):
        return f"[one._async for one in {one.arg}]"
    return f"None if {one.arg} is None else {one.arg}._async"


def wrapped(returns: str, value: str) -> str:
    if returns == "Self":
        return f"cls._of({value})"
    for name in CLASSES:
        if returns == name:
            return f"{sync_name(name)}._of({value})"
        if returns in (f"builtins.list[{name}]", f"list[{name}]"):
            return f"[{sync_name(name)}._of(one) for one in {value}]"
        if re.search(rf"\b{name}\b", returns):
            raise ValueError(f"Say how {returns} is wrapped.")
    return value


def sync_name(name: str) -> str:
    return name.removeprefix("Async")


def sync_text(text: str) -> str:
    return re.sub(r"\bAsync(Iterator|\w+)\b", r"\1", text)


if __name__ == "__main__":
    sys.exit(main())
