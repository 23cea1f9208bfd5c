"""The plain part of YAML that descriptions are written in, read without the YAML library.

Importing ruamel.yaml and parsing a workload of 460 lines with it takes 0.11 s; this takes 5 ms.
Plain are block mappings and lists, flow collections on one line, quoted texts without escapes,
decimal numbers, words and comments, in ASCII. Whatever else a text holds, and every text at fault,
is left to the library: what is read here is what the library would have read.
"""

import re
from typing import Any

from tilewright.document.content import Location

Places = dict[Location, tuple[int, int]]

_MAX_DEPTH = 50
_MAX_NODES = 100_000
_ODD_CHARACTER = re.compile(r"[^\n -~]")
_LINE = re.compile(r"( *)(- +)?(?:([A-Za-z0-9_][\w./-]{0,99}):(?: +|$))?(.*)", re.ASCII)
_QUOTED = re.compile(r"'([^']*)'|\"([^\"\\]*)\"")
_WORD = re.compile(r"(?:[A-Za-z0-9_/(]|[+-][0-9])")
_FLOW_WORD = re.compile(r"(?:[A-Za-z0-9_/(]|[+-][0-9])[\w .+*/=()<>;^$-]*", re.ASCII)
_NUMBER = re.compile(
    r"[+-]?(?:(0|[1-9][0-9]{0,17})|[0-9]{1,18}\.[0-9]{1,18}(?:[eE][+-]?[0-9]{1,2})?)"
)
_MAYBE_NUMBER = re.compile(r"[+-]?(?:[0-9][0-9_.:eE+-]*|0[box][0-9a-fA-F_]*)")
_NAMED = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL"), None),
}


class _NotPlainError(Exception):
    """The text is not of the plain part of YAML, or is at fault."""


class _Token:
    """A `-`, or a key, with the text behind it and the column (from 0) where that starts."""

    __slots__ = ("column", "key", "line", "text", "text_column")

    def __init__(
        self, line: int, column: int, key: str | None, text: str, text_column: int
    ) -> None:
        self.line, self.column, self.key = line, column, key
        self.text, self.text_column = text, text_column


def plain_data(text: str) -> tuple[Any, Places] | None:
    """The data of a text, and the place of every key and list item; None if it is not plain."""
    if _ODD_CHARACTER.search(text):
        return None
    reader = _Reader()
    try:
        reader.tokens = _tokens(text)
        if not reader.tokens:
            return None
        first = reader.tokens[0]
        reader.places[()] = (first.line, first.column + 1)
        data = reader.block(())
    except _NotPlainError:
        return None
    return (data, reader.places) if reader.next == len(reader.tokens) else None


def _tokens(text: str) -> list[_Token]:
    """Dashes and keys in their order; a line `- key: value` gives one of each."""
    result = []
    for number, line in enumerate(text.split("\n"), start=1):
        match = _LINE.match(line)
        assert match is not None  # every part of the pattern may be empty
        indent, dash, key, rest = match.groups()
        start = match.start(4)
        if dash:
            inner = "" if key else rest
            result.append(_Token(number, len(indent), None, inner, start))
        if key:
            result.append(_Token(number, match.start(3), key, rest, start))
        elif not dash and rest and not rest.startswith("#"):
            raise _NotPlainError
    return result


class _Reader:
    """Turns tokens into data by their columns."""

    def __init__(self) -> None:
        self.tokens: list[_Token] = []
        self.next = 0
        self.places: Places = {}

    def block(self, at: Location) -> Any:
        """The list or mapping that starts at the next token."""
        if len(at) > _MAX_DEPTH or len(self.places) > _MAX_NODES:
            raise _NotPlainError
        token = self.tokens[self.next]
        read = self._list if token.key is None else self._mapping
        return read(at, token.column)

    def _list(self, at: Location, column: int) -> list[Any]:
        result: list[Any] = []
        while (token := self._here(column)) is not None and token.key is None:
            self.next += 1
            place = (*at, len(result))
            self.places[place] = (token.line, token.text_column + 1)
            if token.text:
                result.append(self._value(token, place))
                continue
            inner = self.tokens[self.next] if self.next < len(self.tokens) else None
            if inner is None or inner.line != token.line:
                raise _NotPlainError
            self.places[place] = (inner.line, inner.column + 1)
            result.append(self.block(place))
        return result

    def _mapping(self, at: Location, column: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        while (token := self._here(column)) is not None and token.key is not None:
            self.next += 1
            if token.key in result:
                raise _NotPlainError
            place = (*at, token.key)
            self.places[place] = (token.line, token.column + 1)
            if token.text and not token.text.startswith("#"):
                result[token.key] = self._value(token, place)
            else:
                result[token.key] = self.block(place) if self._goes_deeper(column) else None
        return result

    def _here(self, column: int) -> _Token | None:
        """The next token if it stands in a column."""
        token = self.tokens[self.next] if self.next < len(self.tokens) else None
        return token if token is not None and token.column == column else None

    def _goes_deeper(self, column: int) -> bool:
        """Whether the next token belongs to the key before it; a list may stand right below."""
        if self.next == len(self.tokens):
            return False
        token = self.tokens[self.next]
        return token.column > column or (token.column == column and token.key is None)

    def _value(self, token: _Token, at: Location) -> Any:
        """What stands on the same line as its dash or key."""
        text = token.text
        if text[0] in "[{":
            flow = _Flow(self.places, token)
            value = flow.collection(at)
            end = flow.next
        elif text[0] in "'\"":
            match = _QUOTED.match(text)
            if match is None:
                raise _NotPlainError
            value, end = match[match.lastindex or 0], match.end()
        else:
            text = text.partition(" #")[0].rstrip()
            if not _WORD.match(text) or ": " in text or text.endswith(":"):
                raise _NotPlainError
            return _scalar(text)
        rest = text[end:].lstrip(" ")
        if rest and not (rest[0] == "#" and text[-len(rest) - 1] == " "):
            raise _NotPlainError
        return value


class _Flow:
    """Reads `[a, b]` and `{a: 1}` on one line."""

    def __init__(self, places: Places, token: _Token) -> None:
        self.places = places
        self.line, self.text, self.offset = token.line, token.text, token.text_column
        self.next = 0

    def collection(self, at: Location) -> Any:
        """The collection that starts at the next character, which is its bracket."""
        if len(at) > _MAX_DEPTH:
            raise _NotPlainError
        is_list = self.text[self.next] == "["
        end = "]" if is_list else "}"
        items: list[Any] = []
        pairs: dict[str, Any] = {}
        self._skip()
        while self._character() != end:
            if items or pairs:
                self._expect(",")
            if is_list:
                place = (*at, len(items))
                self._mark(place)
                items.append(self._item(place))
            else:
                place, key = self._key(at)
                if key in pairs:
                    raise _NotPlainError
                pairs[key] = self._item(place)
        self._skip()
        return items if is_list else pairs

    def _key(self, at: Location) -> tuple[Location, str]:
        start = self.next
        key = self._word()
        if not key or not key.isprintable() or self.next - start > 100:
            raise _NotPlainError
        place = (*at, key)
        self.places[place] = (self.line, self.offset + start + 1)
        if self.text[self.next : self.next + 2] != ": ":
            raise _NotPlainError
        self._skip()
        return place, key

    def _item(self, at: Location) -> Any:
        character = self._character()
        if character in ("[", "{"):
            return self.collection(at)
        word = self._word()
        self._spaces()
        return word if character in ("'", '"') else _scalar(word)

    def _word(self) -> str:
        """A quoted text, or a plain one; moves behind it."""
        match = _QUOTED.match(self.text, self.next)
        if match is not None:
            self.next = match.end()
            return match[match.lastindex or 0]
        match = _FLOW_WORD.match(self.text, self.next)
        if match is None:
            raise _NotPlainError
        word = match[0].rstrip()
        self.next += len(word)
        return word

    def _mark(self, at: Location) -> None:
        self.places[at] = (self.line, self.offset + self.next + 1)

    def _character(self) -> str:
        if self.next >= len(self.text):
            raise _NotPlainError
        return self.text[self.next]

    def _expect(self, character: str) -> None:
        if self._character() != character:
            raise _NotPlainError
        self._skip()

    def _skip(self) -> None:
        """Move over one character and the spaces behind it."""
        self.next += 1
        self._spaces()

    def _spaces(self) -> None:
        while self.text.startswith(" ", self.next):
            self.next += 1


def _scalar(text: str) -> Any:
    if text in _NAMED:
        return _NAMED[text]
    match = _NUMBER.fullmatch(text)
    if match is not None:
        return int(text) if match[1] else float(text)
    if _MAYBE_NUMBER.fullmatch(text):
        raise _NotPlainError  # such as 0x1f, 1_000, 007 or 1e3
    return text
