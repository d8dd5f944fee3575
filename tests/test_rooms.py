"""The rooms of the house stand on each other: no room imports one above it."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import dynascope

CONTRACTS = Path(__file__).parent.parent / "pyproject.toml"
SOURCES = Path(dynascope.__file__).parent
# Imports by name, which contracts do not see: the room, and what it imports.
BY_NAME = {
    # Modules of PyTorch are measured by the room of PyTorch, the one arrow that points up.
    ("compilation", "module"),
    # Studies and theories are found by their names, each in its own room.
    ("studies", "study.__module__"),
    ("studies", "self.module"),
    ("studies", "module_name"),
    ("theory", "'dynascope.theory'"),
    ("theory", "module.name"),
    ("theory", "package"),
    # Checkpoints in this format need an optional package.
    ("torch", "'safetensors.torch'"),
}


def test_the_contracts_name_every_room():
    contracts = tomllib.loads(CONTRACTS.read_text())["tool"]["importlinter"]["contracts"]
    layers = [layer for contract in contracts if contract["type"] == "layers" for layer in contract["layers"]]
    named = {room.strip() for layer in layers for room in layer.split("|")}
    rooms = {
        f"dynascope.{path.stem}"
        for path in SOURCES.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert rooms - {"dynascope.__init__", "dynascope.__main__"} == named


def test_the_import_contracts_hold():
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", code, "--no-cache", "--config", str(CONTRACTS)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CONTRACTS.parent)
    assert done.returncode == 0, done.stdout
    assert ", 0 broken" in done.stdout


def test_only_known_rooms_import_by_name():
    found = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
                found.add((path.relative_to(SOURCES).parts[0], ast.unparse(node.args[0])))
    assert found == BY_NAME
