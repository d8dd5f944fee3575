"""What the rooms below tell a person to do, in the options of the command."""

from __future__ import annotations

import re

__all__ = ["in_options"]

# By what they say in Python, or of both; the first that fits is taken.
_OPTIONS = {
    r" \(\w+=[^()]*, on the command line (--[^()]*)\)": r" (\1)",
    r" \((--only NAME) on the command line, [^;]*? in Python\)": r" (\1)",
    r"(--minutes), or seconds= in Python": r"\1",
    r"(--standardise, not --raw); in Python task\.standardised\(\)": r"\1",
    r"\(drop=, --drop\)": "(--drop)",
    r"raise max_steps": "raise --max-steps",
    r"shorten the duration": "stop after fewer --jumps",
    r"standardise the inputs": "standardise the inputs (--standardise, or no --raw)",
    r"task\.only\(name\)": "--only NAME",
    r"choose (a larger|another) scale": r"choose \1 --scale",
    r"the homogeneity-normalised flow": "the homogeneity-normalised flow (--normalised)",
    r"(?<![\w-])(loss|classification|missing|target|learning_rate)='?(\w+)'?(?![\w=])": r"--\1 \2",
    r"(?<![\w-])learning_rate=": "--learning-rate",
}


def in_options(sentence: str) -> str:
    """A sentence that tells what to do in Python, in the options of `predict`.

    Example:
        >>> in_options("standardise the data, or raise max_steps")
        'standardise the data, or raise --max-steps'
        >>> in_options("leave it out (drop=, on the command line --drop)")
        'leave it out (--drop)'
    """
    for said, option in _OPTIONS.items():
        sentence = re.sub(said, option, sentence)
    return re.sub(r"--learning_rate", "--learning-rate", sentence)
