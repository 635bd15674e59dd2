"""What the definitions of tools take of every request: no entry holds them, and nothing can fold them."""

from collections.abc import Mapping, Sequence

import msgspec

from sessions_app.engine.calibration import NONE, Calibration
from sessions_app.engine.counting import ENTRY_OVERHEAD, estimate_text

ToolDefinition = Mapping[str, object]
"""As a request holds it: name, description and JSON schema, in any provider's shape."""


_OF_STRUCTURE = 0.75
"""A vocabulary takes the marks between the keys of a schema together, which `estimate_text` counts one by one."""


def estimate_tools(definitions: Sequence[ToolDefinition]) -> int:
    """Tokens of the definitions by estimate: descriptions as texts, the rest as compact JSON. Raises `TypeError` for what is no JSON."""
    return sum(_estimate(definition) + ENTRY_OVERHEAD for definition in definitions)


def _estimate(definition: ToolDefinition) -> int:
    texts: list[str] = []
    structure = msgspec.json.encode(_without_descriptions(definition, texts)).decode()
    return sum(map(estimate_text, texts)) + int(_OF_STRUCTURE * estimate_text(structure))


def _without_descriptions(value: object, texts: list[str]) -> object:
    if isinstance(value, Mapping):
        kept: dict[object, object] = {}
        for key, inner in value.items():
            if key == "description" and isinstance(inner, str):
                texts.append(inner)
                kept[key] = ""
            else:
                kept[key] = _without_descriptions(inner, texts)
        return kept
    return [_without_descriptions(inner, texts) for inner in value] if isinstance(value, list | tuple) else value


def beside_view(tokens: int) -> Calibration:
    """The calibration of a history that was never measured, and whose every request holds so many tokens beside its view."""
    return Calibration(overhead=tokens, prompts=1) if tokens else NONE
