"""Structure of the package: the rooms in import order, their imports, and violations of the order.

    python benchmarks/structure.py

For each room it prints the number of lines, the import statements inside functions and for type checking only, and all
rooms that it imports. The contracts in `pyproject.toml` define the order.
"""

from __future__ import annotations

import ast
import graphlib
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PROJECT = Path(__file__).parents[1]
SOURCES = PROJECT / "src" / "dynascope"
LONGEST = 350


@dataclass
class Room:
    """A folder or module of the package: lines, long files, import statements by place, and imported rooms."""

    lines: int = 0
    long_files: list[str] = field(default_factory=list)
    statements: Counter = field(default_factory=Counter)
    imports: set[str] = field(default_factory=set)


def statements(node: ast.AST, place: str = "top") -> Iterator[tuple[str, ast.Import | ast.ImportFrom]]:
    """Yield each import statement with its place: "top", "types" (type checking only) or "inside" a function."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.Import | ast.ImportFrom):
            yield place, part
        elif isinstance(part, ast.If) and ast.unparse(part.test).endswith("TYPE_CHECKING"):
            yield from statements(part, "types")
        else:
            yield from statements(part, "inside" if isinstance(part, ast.FunctionDef) else place)


def targets(statement: ast.Import | ast.ImportFrom, package: list[str]) -> list[list[str]]:
    """Return the dotted names that a statement in a module of the package imports, split into parts."""
    if isinstance(statement, ast.Import):
        return [name.name.split(".") for name in statement.names]
    start = package[: len(package) - statement.level + 1] if statement.level else []
    module = statement.module.split(".") if statement.module else []
    return [[*start, *module, name.name] for name in statement.names]


def find_rooms(sources: Path = SOURCES) -> dict[str, Room]:
    """Return every room by name. The `__init__` of the package belongs to no room."""
    face = ast.parse((sources / "__init__.pyi").read_text(encoding="utf-8"))
    offered = [target for _, statement in statements(face) for target in targets(statement, [sources.name])]
    doors = {target[-1]: target[1] for target in offered}  # the room behind each name of the whole package
    held = [path.relative_to(sources) for path in sorted(sources.rglob("*.py"))]
    held = [path for path in held if str(path) not in ("__init__.py", "__main__.py")]
    rooms = {path.parts[0].removesuffix(".py"): Room() for path in held}
    for path in held:
        name, text = path.parts[0].removesuffix(".py"), (sources / path).read_text(encoding="utf-8")
        room = rooms[name]
        lines = len(text.splitlines())
        room.lines += lines
        room.long_files += [f"{path} ({lines})"] if lines > LONGEST else []
        for place, statement in statements(ast.parse(text)):
            room.statements[place] += 1
            found = [each for each in targets(statement, [sources.name, *path.parts[:-1]]) if each[0] == sources.name]
            room.imports |= {doors.get(part, part) for each in found for part in each[1:2]} & (rooms.keys() - {name})
    return rooms


def find_circle(rooms: dict[str, Room]) -> list[str]:
    """Return the rooms of an import cycle, if there is one."""
    try:
        graphlib.TopologicalSorter({name: room.imports for name, room in rooms.items()}).prepare()
        return []
    except graphlib.CycleError as circle:
        return circle.args[1]


def find_layers(project: Path = PROJECT) -> list[list[list[str]]]:
    """Return the rooms of each layer contract, from top to bottom."""
    contracts = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = [each["layers"] for each in contracts["contracts"] if each["type"] == "layers"]
    return [[[room.split(".")[-1].strip() for room in line.split("|")] for line in each] for each in layers]


def find_arrows_up(rooms: dict[str, Room], layers: list[list[list[str]]]) -> list[str]:
    """Return the imports of rooms in the same or a higher layer."""
    found = set()
    for contract in layers:
        depth = {room: row for row, line in enumerate(contract) for room in line}
        for name in rooms.keys() & depth.keys():
            up = [room for room in rooms[name].imports & depth.keys() if depth[room] <= depth[name]]
            found |= {f"{name} imports {room}" for room in up}
    return sorted(found)


def main() -> None:
    """Print the structure."""
    rooms, layers = find_rooms(), find_layers()
    print(f"{'room':<14}{'lines':>7}{'inside':>8}{'types':>7}  imports")
    order = [room for line in reversed(layers[0]) for room in line]
    for name in [*order, *sorted(rooms.keys() - set(order))]:
        room = rooms[name]
        numbers = f"{room.lines:>7}{room.statements['inside']:>8}{room.statements['types']:>7}"
        print(f"{name:<14}{numbers}  {', '.join(sorted(room.imports)) or '-'}")
    others = [room for name, room in rooms.items() if name != "studies"]
    print(f"\nimports inside functions, outside studies: {sum(room.statements['inside'] for room in others)}")
    long_files = ", ".join(path for room in others for path in room.long_files)
    print(f"files of more than {LONGEST} lines, outside studies: {long_files or 'none'}")
    print(f"import cycles: {' -> '.join(find_circle(rooms)) or 'none'}")
    print(f"imports against the order: {', '.join(find_arrows_up(rooms, layers)) or 'none'}")


if __name__ == "__main__":
    main()
