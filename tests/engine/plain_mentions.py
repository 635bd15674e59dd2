"""What a text names by plain rules, each one expression over one text: what the quick search in many at once has to come to."""

import re
from collections.abc import Iterator

from sessions_app.engine import mentions

_URL = re.compile(r"https?://[^\s<>\"'`|\\\])}]{4,300}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NUMBER = re.compile(r"#\d{1,7}\b")
_REPOSITORY_BEFORE = re.compile(r"[\w.-]{1,60}/[\w.-]{1,60}\Z")
_TICKET = re.compile(r"(?<!\w)[A-Z][A-Z0-9]{1,9}-\d{1,7}\b")
_HASH = re.compile(r"(?<![\w-])[0-9a-f]{7,40}(?![\w-])")
_SPOKEN = re.compile(r"\b(?:[a-z0-9]{1,40}(?:_[a-z0-9]{1,40}){1,8}|[A-Z][a-z0-9]{1,40}(?:[A-Z][a-z0-9]{0,40}){1,8})\b")


def urls(text: str) -> list[str]:
    return [match.group().rstrip(".,;:!?*_~…") for match in _URL.finditer(text)]


def identifiers(text: str, *, spoken: bool) -> list[str]:
    found = _UUID.findall(text)
    found += _numbers(text)
    found += _TICKET.findall(text)
    found += [word for word in _HASH.findall(text) if not word.isdigit() and not word.isalpha()]
    if spoken:
        found += [word for word in _SPOKEN.findall(text) if word not in mentions._HOUSEHOLD_WORDS]
    return found


def _numbers(text: str) -> Iterator[str]:
    for match in _NUMBER.finditer(text):
        before = text[: match.start()]
        repository = _REPOSITORY_BEFORE.search(before[-121:])
        if repository or not before[-1:].isalnum():
            yield (repository.group() if repository else "") + match.group()


def quantities(text: str) -> list[str]:
    found = []
    for match in mentions._QUANTITY.finditer(text):
        number, unit = match.groups()
        found.append(f"{number.replace(',', '')} {unit}" if unit != "%" else f"{number}%")
    return found
