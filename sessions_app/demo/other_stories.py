"""Stories without much code: research, support, a review with a sub-agent, pictures, a small text."""

import random

from sessions_app.demo import work
from sessions_app.demo.material import PAYMENTS, SHOP, Place
from sessions_app.demo.stories import started, summary
from sessions_app.demo.transcript import Transcript, picture

SideFiles = list[tuple[Transcript, dict[str, object]]]
PAGES = (
    ("Graph indexes under memory pressure", "recall at 10 falls from 0.97 to 0.91 when the graph leaves memory"),
    ("Quantised inverted lists in practice", "build time 38 minutes for 3 million vectors on 8 cores; recall 0.94"),
    ("A database extension, one year on", "vacuum takes 6 hours after a full rebuild; queries at 14 ms p95"),
    ("Notes on filtered search", "with a filter that keeps 2 % of the documents, graph search degenerates to a scan"),
    ("What rebuilding costs", "a nightly rebuild needs twice the disk for 50 minutes"),
)
RESEARCH = Place(
    root="/home/dev/notes",
    branch="main",
    modules=("notes/indexes.md", "notes/costs.md", "notes/filters.md"),
    nouns=("index", "vector", "filter", "query", "cluster", "document"),
    verbs=("build", "search", "rank", "score", "load", "compare"),
)


def release_notes() -> Transcript:
    """A short talk without tools: there is nothing to fold."""
    session, _ = started("release-notes", SHOP, seed=3, model="claude-haiku-4-5")
    session.title("Release notes for 4.2")
    session.ask(
        "Write release notes for 4.2 from this list: carts survive a sign-in; refunds show their reason; exports are twice as fast."
    )
    session.say(
        "# Release 4.2\n\n**Carts stay.** What you put into the cart before signing in is still there afterwards.\n\n"
        "**Refunds say why.** Each refund shows its reason, also in the export.\n\n**Faster exports.** A month takes half as long as before."
    )
    session.ask("Shorter, and for people who only read the first line.")
    session.say("**4.2: your cart stays when you sign in, refunds say why, exports take half as long.**")
    return session


def vector_index() -> Transcript:
    """Research with searches and pages read; compacted once by hand, with what to stress."""
    session, rng = started("vector-index", RESEARCH, seed=5, model="claude-opus-4-5")
    session.title("Which vector index for three million documents?")
    session.ask(
        "Compare vector indexes for 3 million documents of 768 dimensions, on one machine with 32 GB. Filters by customer are a must. Cite what you use."
    )
    for round_ in range(2):
        for title, finding in PAGES:
            _read_page(session, rng, title, finding)
        session.say(
            f"So far, after {len(PAGES) * (round_ + 1)} pages:\n\n| family | recall at 10 | with a 2 % filter |\n| --- | --- | --- |\n| graph | 0.97 | poor |\n| inverted lists | 0.94 | good |\n\n"
            "The filter decides: every customer holds about 2 % of the documents."
        )
        session.ask("What would it cost to rebuild every night?" if round_ == 0 else "Keep the numbers and the sources. We go on tomorrow.")
        kept = session.say("A nightly rebuild takes 38 to 50 minutes and twice the disk for that time.")
    session.compact(
        summary(
            "Recommend a vector index for 3 million documents of 768 dimensions on one machine with 32 GB.",
            constraints=("Filters by customer are a must (about 2 % each).", "Every number needs its source."),
            done=tuple(f"{title}: {finding}" for title, finding in PAGES),
            files=("notes/indexes.md",),
            pending=("Compare the cost of a nightly rebuild", "Write the recommendation"),
            current="The table of families is agreed; the costs are next.",
        ),
        automatic=False,
        keep=(kept,),
        instructions="keep the numbers and the sources",
        seconds=71,
    )
    session.ask("Good morning. Write the recommendation, one page.")
    _read_page(session, rng, *PAGES[-1])
    session.say(
        "## Recommendation\n\nInverted lists with quantised vectors, rebuilt on Sundays and appended to on other days.\n\n"
        "1. A filter of 2 % keeps its recall (0.94), where a graph degenerates to a scan.\n2. It fits: 3,000,000 × 96 bytes = 288 MB.\n"
        "3. A rebuild of 50 minutes is fine once a week.\n\n> Open: recall on our own questions. I propose 200 of them, judged by two people."
    )
    return session


def _read_page(session: Transcript, rng: random.Random, title: str, finding: str) -> None:
    address = "https://papers.example/" + title.lower().replace(" ", "-").replace(",", "")
    session.call("WebSearch", {"query": title.lower()}, f'1. "{title}" {address}\n2. "A survey" https://papers.example/survey', seconds=2)
    paragraphs = [work.filled(rng, RESEARCH, rng.choice((*work.FINDINGS, *work.THOUGHTS))) for _ in range(rng.randint(50, 70))]
    paragraphs.insert(len(paragraphs) // 2, f"In our measurements, {finding}.")
    session.call("WebFetch", {"url": address, "prompt": "What was measured, and how?"}, "\n\n".join((f"# {title}", *paragraphs)), seconds=5)


def vat_ticket() -> Transcript:
    """A support case that is under way: the last request has no answer yet."""
    session, rng = started("vat-ticket", PAYMENTS, seed=7)
    session.title("Ticket 48213: invoices show the wrong VAT")
    session.ask(
        "Customer 48213 says that three invoices of May show 19 % VAT instead of 7 %. Check before we answer; be careful with names in the reply."
    )
    session.say("I look for the invoices and for the rate that was in force.", ends_message=False)
    session.call(
        "Bash",
        {"command": "bin/invoices --customer 48213 --month 2026-05", "description": "List the invoices"},
        "number    net     rate  vat\nR-90112  120.00   19 %  22.80\nR-90155   80.00   19 %  15.20\nR-90201   45.50    7 %   3.19",
    )
    work.search(session, rng, PAYMENTS)
    session.say(
        "Two of the three are wrong, not three: `R-90112` and `R-90155` hold books, which are taxed at 7 %. `R-90201` is right.\n\n"
        "- owed to the customer: **24.00 × 0.12 = 2.88** and **16.00 × 0.12 = 1.92**, I check that next\n- cause: the article group was changed on 2 May"
    )
    session.ask("Check the sums again, they look odd. Then write the reply.")
    return session


def permissions_review() -> tuple[Transcript, SideFiles]:
    """A review that sends two sub-agents ahead; each has a file of its own."""
    session, rng = started("permissions-review", SHOP, seed=13)
    session.title("Review of the permissions module")
    session.ask(
        "Review who may see a cart. Two questions: can a visitor read somebody else's cart, and does support see more than it needs?"
    )
    children: SideFiles = []
    for number, (description, verdict) in enumerate(
        (
            (
                "Trace every read of a cart",
                "All 7 reads go through `visible_to`; one of them (`carts/merge.py:88`) passes the wrong visitor.",
            ),
            ("List what support can see", "Support sees card digits in `api/refunds.py`: 4 digits would do, 12 are shown."),
        ),
        1,
    ):
        prompt = f"{description}. Answer with file and line, and say what you did not look at."
        call = session.open_call("Task", {"description": description, "prompt": prompt, "subagent_type": "Explore"})
        child, child_rng = started(f"permissions-review-{number}", SHOP, seed=130 + number)
        child.agent_id, child.session_key = f"a{number}c4e8d10", session.key
        child.ask(prompt)
        for _ in range(4):
            work.look(child, child_rng, SHOP, size=5)
            work.search(child, child_rng, SHOP)
        child.say(verdict)
        children.append((child, {"agentType": "Explore", "description": description, "toolUseId": call}))
        session.answer(call, [{"type": "text", "text": verdict}], seconds=80)
    session.say(
        "Two findings, both real:\n\n1. `carts/merge.py:88` merges the cart of the visitor that signed *out*.\n2. Refunds show 12 digits of the card to support."
    )
    work.turn(session, rng, SHOP, request="Fix the first one. The second needs the word of finance; open a ticket.", size=5)
    return session, children


def pricing_pictures() -> Transcript:
    """Screenshots in the talk: pasted by a person, and taken by a tool."""
    session, rng = started("pricing-pictures", SHOP, seed=17)
    session.title("Screenshots of the new pricing page")
    session.ask("Take a screenshot of the pricing page in both colour schemes and tell me which card draws the eye first.")
    light = [(250, 250, 248), (226, 232, 240), (44, 90, 160), (226, 232, 240), (250, 250, 248)]
    dark = [(20, 22, 26), (40, 44, 52), (120, 170, 250), (40, 44, 52), (20, 22, 26)]
    for scheme, colours in (("light", light), ("dark", dark)):
        session.call(
            "mcp__browser__screenshot",
            {"url": "http://127.0.0.1:3000/pricing", "scheme": scheme},
            [{"type": "text", "text": f"Screenshot, {scheme}, 640 × 200"}, picture(640, 200, colours)],
            seconds=4,
        )
    session.say(
        "In both, the middle card. In the dark scheme its border is the brightest thing on the page: 9.1 : 1 against the ground, where 3 : 1 would do."
    )
    session.ask("Tone it down and show me again.")
    work.change(session, rng, SHOP)
    session.call(
        "mcp__browser__screenshot",
        {"url": "http://127.0.0.1:3000/pricing", "scheme": "dark"},
        [{"type": "text", "text": "Screenshot, dark, 640 × 200"}, picture(640, 200, [dark[0], dark[1], (80, 110, 160), dark[1], dark[0]])],
        seconds=4,
    )
    session.say("The border is at 4.2 : 1 now.")
    return session
