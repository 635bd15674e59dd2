"""What tools print: source listings, test runs, search hits, logs. Drawn from a seeded generator, so always the same."""

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """A code base that a story plays in."""

    root: str
    branch: str
    modules: tuple[str, ...]
    nouns: tuple[str, ...]
    verbs: tuple[str, ...]

    def path(self, rng: random.Random) -> str:
        return f"{self.root}/{rng.choice(self.modules)}"

    def name(self, rng: random.Random) -> str:
        return f"{rng.choice(self.verbs)}_{rng.choice(self.nouns)}"


PAYMENTS = Place(
    root="/home/dev/payments",
    branch="fix/retries",
    modules=("worker/retry.py", "worker/queue.py", "ledger/postings.py", "ledger/export.py", "api/refunds.py", "tests/test_retry.py"),
    nouns=("payment", "posting", "refund", "batch", "invoice", "attempt", "ledger", "balance"),
    verbs=("load", "settle", "retry", "reconcile", "post", "lock", "release", "count"),
)
SHOP = Place(
    root="/home/dev/shop",
    branch="feat/session-store",
    modules=("sessions/store.py", "sessions/codec.py", "web/middleware.py", "settings/cache.py", "carts/merge.py", "tests/test_store.py"),
    nouns=("session", "cart", "cookie", "cache", "visitor", "key", "lifetime", "payload"),
    verbs=("read", "write", "expire", "merge", "encode", "decode", "touch", "purge"),
)
IMPORTER = Place(
    root="/home/dev/harvest",
    branch="stream-importer",
    modules=("readers/lines.py", "readers/archive.py", "store/batches.py", "store/index.py", "report/problems.py", "tests/test_stream.py"),
    nouns=("record", "batch", "line", "offset", "archive", "problem", "index", "cursor"),
    verbs=("read", "parse", "flush", "resume", "verify", "append", "skip", "count"),
)


def listing(rng: random.Random, place: Place, functions: int) -> str:
    """A numbered source file, as a Read tool prints it."""
    lines = ["import logging", "from dataclasses import dataclass", "", "logger = logging.getLogger(__name__)", ""]
    for _ in range(functions):
        noun, other = rng.sample(place.nouns, 2)
        verb = rng.choice(place.verbs)
        limit = rng.choice((10, 25, 50, 100, 250))
        lines += [
            f"def {verb}_{noun}({noun}_id: int, *, limit: int = {limit}) -> list[int]:",
            f'    """Returns the {other}s of one {noun}, oldest first, at most `limit`."""',
            f"    rows = {noun}s_of({noun}_id)",
            "    if not rows:",
            f'        logger.info("no {other} for {noun} %s", {noun}_id)',
            "        return []",
            f"    kept = [row for row in rows if row.{other}_id is not None][:limit]",
            f"    for row in kept[{rng.randint(0, 2)}:]:",
            f"        row.{rng.choice(place.verbs)}({noun}_id)",
            f"    return [row.{other}_id for row in kept]",
            "",
        ]
    return "\n".join(f"{number:>5}\t{line}" for number, line in enumerate(lines, 1))


def run_output(rng: random.Random, place: Place, *, failing: Sequence[str] = (), passing: int = 40) -> str:
    """What a test runner prints; each of `failing` is a test's name."""
    head = f"collected {passing + len(failing)} items\n\n"
    dots = "." * passing
    if not failing:
        return f"{head}{place.modules[-1]} {dots} [100%]\n\n{passing} passed in {rng.uniform(0.8, 9):.2f}s"
    blocks = []
    for name in failing:
        wanted, got = rng.randint(2, 9), rng.randint(10, 19)
        blocks.append(
            f"____________ {name} ____________\n\n    def {name}(clock):\n        calls = {place.name(rng)}(clock)\n"
            f">       assert len(calls) == {wanted}\nE       AssertionError: assert {got} == {wanted}\nE        +  where {got} = len(calls)\n\n"
            f"{place.modules[-1]}:{rng.randint(20, 240)}: AssertionError"
        )
    tail = "\n".join(f"FAILED {place.modules[-1]}::{name} - AssertionError" for name in failing)
    failures = "\n".join(blocks)
    return f"{head}{place.modules[-1]} {dots}{'F' * len(failing)} [100%]\n\n{failures}\n\n{tail}\n{len(failing)} failed, {passing} passed in {rng.uniform(1, 9):.2f}s"


def search_hits(rng: random.Random, place: Place, word: str, count: int) -> str:
    """What a search over the code prints."""
    hits = []
    for _ in range(count):
        hits.append(f"{rng.choice(place.modules)}:{rng.randint(4, 380)}:    {word} = {place.name(rng)}({rng.choice(place.nouns)}_id)")
    return "\n".join(hits)


def log_lines(rng: random.Random, place: Place, count: int) -> str:
    """A service's log, with a warning now and then."""
    lines = []
    second = rng.randint(0, 50_000)
    for _ in range(count):
        second += rng.randint(0, 7)
        clock = f"{second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}"
        level = rng.choices(("INFO", "INFO", "WARNING", "ERROR"), weights=(6, 6, 2, 1))[0]
        lines.append(
            f"{clock} {level:7} {place.modules[0].split('/')[0]}: {place.name(rng)} {rng.choice(place.nouns)}={rng.randint(1000, 99999)} "
            f"attempt={rng.randint(1, 5)} took={rng.randint(2, 900)}ms"
        )
    return "\n".join(lines)


def coloured_run(rng: random.Random, place: Place, count: int) -> str:
    """A test run with terminal colours."""
    green, red, off = "\x1b[32m", "\x1b[31m", "\x1b[0m"
    lines = [f"{green}PASSED{off} {place.modules[-1]}::test_{place.name(rng)}" for _ in range(count)]
    lines.insert(count // 2, f"{red}FAILED{off} {place.modules[-1]}::test_{place.name(rng)} - TimeoutError")
    return "\n".join(lines)
