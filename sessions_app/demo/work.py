"""Rounds of coding work, strung together from a seeded generator: look, search, change, test, conclude."""

import random

from sessions_app.demo import material
from sessions_app.demo.material import Place
from sessions_app.demo.transcript import Transcript

THOUGHTS = (
    "The {noun} is read before the lock is taken, so two workers can see the same {other}. I should look at who calls {name} first.",
    "{name} swallows the error and answers an empty list. That would explain why nothing shows up in the log for this {noun}.",
    "Before I change {name}, a test should fail for the reason that we see, not for another one.",
    "Two ways: keep the {noun} in the row, or derive it from the {other}s. The second needs no migration, but costs a query per {noun}.",
)
FINDINGS = (
    "`{name}` in `{path}` reads the {noun} outside of the transaction. When two workers meet there, both take the same {other}.",
    "The limit of {number} is applied before the filter, so {a_noun} with many empty {other}s loses real ones.",
    "`{path}` has a second copy of `{name}`; the tests cover only that one.",
    "The {other} comes back as text, not as a number. The comparison in `{name}` is therefore never true.",
)
CONCLUSIONS = (
    "Done: `{name}` now takes the lock first, and the {noun} is read inside it.\n\n- changed: `{path}`\n- tests: {number} pass\n- not touched: the {other}s that are already wrong; they need a correction of their own",
    "The test that failed now passes. I kept the old signature of `{name}`, since three callers in `{path}` depend on it.\n\n| before | after |\n| --- | --- |\n| {number} queries per {noun} | 2 queries per {noun} |",
    "Both cases are covered now. What is left is the {other} in `{path}`: it must never be written without its {noun}.",
    "I measured it: {number} ms before, a quarter of that after. The difference is the missing index on the {other}.\n\n```sql\nCREATE INDEX CONCURRENTLY {noun}_by_{other} ON {noun}s ({other}_id);\n```",
)
REQUESTS = (
    "Please look at how {name} treats {a_noun} without {other}s, and make it say so instead of answering nothing.",
    "The {noun} count on the dashboard is off by {number} since Tuesday. Find out why before you change anything.",
    "Next: {name}. It must never run twice for the same {noun}.",
    "Can you make {name} stream its {other}s? For big {noun}s it takes more than {number} MB.",
    "Add a test for the case that {a_noun} is closed while its {other}s are still being read.",
    "Looks good. Now the same for {name} in `{path}`, but keep the public signature.",
)


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"


def filled(rng: random.Random, place: Place, template: str) -> str:
    """The template with words of the place put in."""
    noun, other = rng.sample(place.nouns, 2)
    values = {
        "noun": noun,
        "a_noun": _with_article(noun),
        "other": other,
        "name": place.name(rng),
        "path": rng.choice(place.modules),
        "number": rng.randint(12, 480),
    }
    return template.format(**values)


def look(session: Transcript, rng: random.Random, place: Place, *, size: int) -> None:
    """Reads one file of `size` functions."""
    session.call("Read", {"file_path": place.path(rng)}, material.listing(rng, place, size), seconds=1)


def search(session: Transcript, rng: random.Random, place: Place) -> None:
    word = rng.choice(place.nouns)
    session.call(
        "Grep", {"pattern": rf"\b{word}_id\b", "path": place.root}, material.search_hits(rng, place, word, rng.randint(6, 24)), seconds=1
    )


def change(session: Transcript, rng: random.Random, place: Place) -> None:
    path, old = place.path(rng), rng.choice(place.nouns)
    session.call(
        "Edit",
        {
            "file_path": path,
            "old_string": f"    rows = {old}s_of({old}_id)\n    if not rows:\n        return []",
            "new_string": f"    with locked({old}_id):\n        rows = {old}s_of({old}_id)\n    if not rows:\n        raise Missing{old.title()}({old}_id)",
        },
        f"The file {path} has been updated.",
        seconds=1,
    )


def run_tests(session: Transcript, rng: random.Random, place: Place, *, fails: bool = False) -> None:
    failing = [f"test_{place.name(rng)}_twice"] if fails else []
    output = material.run_output(rng, place, failing=failing, passing=rng.randint(18, 64))
    session.call(
        "Bash",
        {"command": f"pytest -q {place.modules[-1]}", "description": "Run the tests"},
        output,
        error=fails,
        seconds=rng.randint(3, 20),
    )


def read_log(session: Transcript, rng: random.Random, place: Place, *, lines: int) -> None:
    command = f"tail -n {lines} /var/log/{place.modules[0].split('/')[0]}.log"
    session.call("Bash", {"command": command, "description": "Read the log"}, material.log_lines(rng, place, lines), seconds=1)


def turn(session: Transcript, rng: random.Random, place: Place, *, request: str = "", size: int = 6) -> None:
    """One request of a person with what the agent does about it: four to eight calls. `size` scales the files read."""
    session.ask(request or filled(rng, place, rng.choice(REQUESTS)))
    if rng.random() < 0.6:
        session.think(filled(rng, place, rng.choice(THOUGHTS)))
    session.say(filled(rng, place, "I start with `{path}`, where the {noun} is made."), ends_message=False)
    look(session, rng, place, size=rng.randint(max(size // 2, 1), size))
    search(session, rng, place)
    if rng.random() < 0.4:
        read_log(session, rng, place, lines=rng.randint(10, 8 * size))
    session.say(filled(rng, place, rng.choice(FINDINGS)), ends_message=False)
    change(session, rng, place)
    if rng.random() < 0.5:
        run_tests(session, rng, place, fails=True)
        session.say(
            filled(rng, place, "One test fails: the {noun} is still counted with its {other}s. I correct the expectation in `{path}`."),
            ends_message=False,
        )
        change(session, rng, place)
    run_tests(session, rng, place)
    session.say(filled(rng, place, rng.choice(CONCLUSIONS)))
