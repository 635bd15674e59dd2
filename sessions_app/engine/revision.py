"""A checkpoint that is not committed yet, with another wording of its summary: the same plan, another block, other sizes."""

from collections.abc import Sequence

import msgspec

from sessions_app.engine import summary as summaries
from sessions_app.engine import verification
from sessions_app.engine.block import neutralise
from sessions_app.engine.counting import estimate_text
from sessions_app.engine.entries import Checkpoint, Segment
from sessions_app.engine.redaction import redact
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.steps import Commit
from sessions_app.engine.summarising import Load, Reading


def reworded(made: Commit, text: str) -> Commit:
    """The checkpoint with `text` for its summary. With its own summary it is byte for byte what it was. Costs no reading.

    Credentials are taken out, and a warning says so. Raises `ValueError` for a checkpoint that has no block.
    """
    if not made.block:
        raise ValueError("This checkpoint has no summary that could be worded otherwise.")
    clean, redactions = redact(text.strip())
    block = _with_summary(made.block, made.summary, clean)
    tokens = estimate_text(block)
    said_of_old = summaries.warnings(made.summary)
    warnings = [*summaries.warnings(clean), *(warning for warning in made.warnings if warning not in said_of_old)]
    if redactions:
        warnings.append(f"{redactions} credential{'s were' if redactions > 1 else ' was'} removed from what was written into it.")
    return msgspec.structs.replace(
        made,
        summary=clean,
        block=block,
        block_tokens=tokens,
        segments=tuple(_with_block(segment, made.block, block) for segment in made.segments),
        tokens_after=made.tokens_after - made.block_tokens + tokens,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def verified(made: Commit, shapes: Sequence[EntryShape], chain: Sequence[Checkpoint], load: Load, previous_summary: str) -> Commit:
    """The checkpoint with a new report of what its summary retained. Reads the history up to its boundary."""
    reading = Reading(load, len(shapes), lambda: None)
    reading.state_before(made.boundary_index)
    return verification.of(made, shapes, chain[-1] if chain else None, reading, redact(previous_summary)[0])


def _with_summary(block: str, old: str, new: str) -> str:
    """The block with the summary that follows its opening paragraph replaced."""
    opening, gap, rest = block.partition("\n\n")
    told = neutralise(old.strip())
    if not rest.startswith(told):
        raise ValueError("This block does not hold the summary that it was made with.")
    after = rest[len(told) :]
    return f"{opening}{gap}{neutralise(new)}{after}" if new else f"{opening}{after or gap}"


def _with_block(segment: Segment, old: str, new: str) -> Segment:
    if segment.payload is None or segment.payload.text != old:
        return segment
    return msgspec.structs.replace(segment, payload=msgspec.structs.replace(segment.payload, text=new))
