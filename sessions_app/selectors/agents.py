"""Names of agents and models, as their makers and users write them."""

AGENT_NAMES = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "openai-chat": "OpenAI chat",
    "anthropic-messages": "Anthropic messages",
    "palimpsest": "Palimpsest",
}


def agent_name(agent: str) -> str:
    """An agent's own name; one that is not known is shown as it is, none as `unknown`."""
    return AGENT_NAMES.get(agent, agent) or "unknown"


def short_model(model: str) -> str:
    """A model without maker's prefix and date: `claude-opus-4-5-20251101` is `opus-4-5`."""
    name = model.rpartition("/")[2].removeprefix("claude-")
    head, _, tail = name.rpartition("-")
    return head if head and len(tail) == len("20251101") and tail.isdigit() else name
