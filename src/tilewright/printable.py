"""What a terminal may be sent: names from files must not steer it."""

import re

_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # escapes, bells, line ends, cursor movements
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what turns the direction of text around
    "\u2028\u2029\ud800-\udfff]"  # further line ends; what is half a character
)


def printable(text: str) -> str:
    r"""The text with characters that steer a terminal written as escapes.

    >>> printable("conv\x1b]0;name\x07 ü\n")
    'conv\\x1b]0;name\\x07 ü\\n'
    """
    return _STEERING.sub(_escaped, text) if _STEERING.search(text) else text


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
