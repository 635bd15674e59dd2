"""The estimate of a text as a plain rule over its characters: what the quick one has to come to, to the token."""

_BEYOND = {"digit": 750, "mark": 500, "symbol": 1_750, "two bytes": 150, "three bytes": 450}


def class_of(char: str) -> str:
    """What kind of character it is: told by the first byte of its UTF-8."""
    first = char.encode("utf-8", "surrogatepass")[0]
    if char in "0123456789":
        return "digit"
    if char in " \n":
        return "white"
    if "!" <= char <= "~" and not char.isalnum() and char != "_":
        return "mark"
    if first == 0xE2 or first >= 0xF0:
        return "symbol"
    if first >= 0xE0:
        return "three bytes"
    return "two bytes" if first >= 0xC2 else ""


def estimate(text: str) -> int:
    """Tokens, rounded up."""
    kinds = [class_of(char) for char in text]
    pairs, place = 0, 0
    while (place := text.find("  ", place)) >= 0:
        pairs += 1
        place += 2
    counted = (len(text) - 2 * pairs) * 180 + pairs * 50 + sum(_BEYOND.get(kind, 0) for kind in kinds)
    white, marks = kinds.count("white"), kinds.count("mark")
    if text.isascii() and len(text) >= 200 and (white + marks) * 32 < len(text) and not text[:200].islower():
        counted = max(counted, len(text) * 600)
    return -(-max(counted, (len(text) - white) * 215) // 1_000)
