from __future__ import annotations

import argparse
import ast
import inspect
import sys
import textwrap

import pytest

from dynascope.errors import InputError
from dynascope.tasks import python_documentation


def test_a_shorter_text_is_the_beginning_of_a_longer_one():
    long = python_documentation(50_000)
    assert len(long) == 50_000
    for characters in (1, 1_000, 1_001, 49_999):
        assert python_documentation(characters) == long[:characters]


def test_it_contains_the_documentation_of_modules_classes_and_methods():
    text = python_documentation()
    for each in (argparse, argparse.HelpFormatter, ast.NodeVisitor.visit):
        assert inspect.getdoc(each) in text


def test_modules_are_not_imported(monkeypatch):
    before = set(sys.modules)
    python_documentation(40_001)
    assert set(sys.modules) == before


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A small standard library."""
    files = {
        "b.py": '"""Last."""',
        "a/__init__.py": '"""First."""\ndef f():\n    """Function."""\nclass C:\n    """Class."""\n    def m(self):\n'
        '        r"""Method \\d."""\n        return "not documentation"',
        "a/tests/x.py": '"""A test."""',
        "test/y.py": '"""A test."""',
        "site-packages/z.py": '"""Another package."""',
        "latin.py": '# coding: latin-1\n"""\xe9."""',
    }
    for name, source in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(textwrap.dedent(source).encode("latin-1"))
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    return "First.\n\nFunction.\n\nClass.\n\nMethod \\d.\n\nLast.\n\n\xe9."


def test_files_are_in_alphabetical_order_without_tests_and_installed_packages(library):
    for characters in range(1, len(library) + 1):
        assert python_documentation(characters) == library[:characters]


def test_too_many_characters_are_rejected_with_the_available_number(library):
    with pytest.raises(InputError, match=str(len(library))) as error:
        python_documentation(len(library) + 1)
    assert error.value.argument == "characters"
    with pytest.raises(InputError):
        python_documentation(0)
