"""What a compaction would cost and save in money, by list prices, from the numbers of its preview."""

from dataclasses import dataclass

from sessions_app.engine.entries import Usage
from sessions_app.models import Session
from sessions_app.providers.prices import prices_of_model, prices_of_summariser
from sessions_app.selectors.compact_preview import CompactPreview


@dataclass(frozen=True)
class CompactionCosts:
    """US dollars; None where no list price is known.

    `summary`: of the summary calls, where each is answered at once and at full length; 0 where no model is asked. `rewrite`: the
    next request writes the new view into the provider's prompt cache, since its beginning is another. `saved`: how much less each
    request after that costs while both are read from the cache; negative where the view grows. Both are those of `model`, the
    session's.
    """

    summary: float | None
    model: str = ""
    rewrite: float | None = None
    saved: float | None = None


def costs_of(session: Session, preview: CompactPreview) -> CompactionCosts | None:
    """What the plan of a preview comes to. None where it is refused. No query."""
    if preview.refusal:
        return None
    summary = _summary(preview) if preview.asks_model else 0.0
    prices = prices_of_model(session.model)
    if prices is None:
        return CompactionCosts(summary)
    rewrite = prices.cost(Usage(cache_write=preview.view_after))
    before, after = (prices.cost(Usage(cache_read=tokens)) for tokens in (preview.view_tokens, preview.view_after))
    saved = before - after if before is not None and after is not None else None
    return CompactionCosts(summary, session.model, rewrite, saved)


def _summary(preview: CompactPreview) -> float | None:
    prices = prices_of_summariser(preview.summariser)
    return prices.cost(Usage(input=preview.calls.read, output=preview.calls.written)) if prices else None
