"""The generic runner: it takes events by HTTP, and answers 200 (done), 202 (it will report), 204 (yours) or anything else (no).

Each request is sent once, to its very address: no redirect is followed, no proxy of the environment used, no answer asked for again.
The status decides; what else an answer holds is read only as far as it is understood, and never past its first 64 kB.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from sessions_app.runners.addresses import events_url
from sessions_app.runners.base import COMPACT, Capability, CompactAnswer, Handling, Health, HealthReport
from sessions_app.runners.errors import RunnerError, RunnerUnavailable, UnknownOutcome, refused

if TYPE_CHECKING:
    import httpx2

ACKNOWLEDGE_S = 20.0
"""A runner has so long for the whole of its answer."""

HEALTH_S = 5.0
MAX_BODY_BYTES = 65_536
MOST_TOKENS = 2**53
MAX_OPERATION_CHARS = 200

_NEVER_SENT = "The runner could not be reached, so nothing was sent."
_NO_ANSWER = "The request was sent, and no answer came: whether the runner carried it out is not known."


class HttpRunner:
    """A runner at `base_url`. `token`: its bearer token, which is held in memory alone."""

    def __init__(self, base_url: str, *, token: str = "", acknowledge_s: float = ACKNOWLEDGE_S) -> None:
        self._base_url = base_url
        self._token = token
        self._acknowledge_s = acknowledge_s

    def __repr__(self) -> str:
        return f"HttpRunner({self._base_url!r})"

    async def compact(self, session_id: str) -> CompactAnswer:
        """Forwards exactly `{"type":"compact"}`, once."""
        status, body = await self._post(session_id, {"type": COMPACT})
        told = _told(body)
        if status == 200:
            return CompactAnswer(
                handling=Handling.RUNNER,
                status=status,
                nothing_to_do=told.get("outcome") == "nothing_to_do",
                tokens_before=_tokens(told.get("tokens_before")),
                tokens_after=_tokens(told.get("tokens_after")),
                operation_id=_operation(told.get("operation_id")),
            )
        if status == 204:
            return CompactAnswer(handling=Handling.CONSOLE, status=status)
        if status == 202 and (operation := _operation(told.get("operation_id"))):
            return CompactAnswer(handling=Handling.PENDING, status=status, operation_id=operation)
        raise refused(status)

    async def deliver(self, session_id: str, event_type: str, data: Mapping[str, Any]) -> int:
        """Hands an event over. 200, 202 and 204 mean that the runner took it."""
        status, _ = await self._post(session_id, {"type": event_type, "data": data})
        if status not in {200, 202, 204}:
            raise refused(status)
        return status

    async def health(self) -> HealthReport:
        """Asks `GET {base}/health`. Any answer below 500 is a sign of life; `capabilities` in it is read."""
        try:
            status, body = await self._ask("GET", f"{self._base_url}/health", None, min(HEALTH_S, self._acknowledge_s))
        except RunnerError as error:
            return HealthReport(
                health=Health.DOWN, problem=str(error) if isinstance(error, RunnerUnavailable) else "No answer came in time."
            )
        if status >= 500:
            return HealthReport(health=Health.DOWN, problem=f"The runner answered {status}.")
        if status in {401, 403}:
            return HealthReport(health=Health.DOWN, problem=str(refused(status)))
        named = _told(body).get("capabilities")
        known = tuple(one for one in Capability if one in named) if isinstance(named, list) else tuple(Capability)
        return HealthReport(health=Health.UP, capabilities=known)

    async def _post(self, session_id: str, body: Mapping[str, Any]) -> tuple[int, bytes]:
        return await self._ask("POST", events_url(self._base_url, session_id), msgspec.json.encode(body), self._acknowledge_s)

    async def _ask(self, method: str, url: str, content: bytes | None, limit_s: float) -> tuple[int, bytes]:
        """(status, beginning of the body). Raises `RunnerUnavailable` before anything was sent, else `UnknownOutcome`."""
        import httpx2  # noqa: PLC0415  a tenth of a second of import, which only who asks a runner pays

        sending = _Sending()
        answer = _Answer()
        try:
            async with asyncio.timeout(limit_s), _client(httpx2) as client:
                request = client.build_request(method, url, content=content, headers=self._headers(), extensions={"trace": sending.note})
                await answer.read(client, request)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, OSError) as error:
            if answer.status is None:
                raise (UnknownOutcome(_NO_ANSWER) if sending.has_begun else RunnerUnavailable(_NEVER_SENT)) from error
        assert answer.status is not None
        return answer.status, bytes(answer.body)

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "Content-Type": "application/json", "Connection": "close"}
        return headers | ({"Authorization": f"Bearer {self._token}"} if self._token else {})


def _client(httpx: Any) -> "httpx2.AsyncClient":
    client: httpx2.AsyncClient = httpx.AsyncClient(
        follow_redirects=False, trust_env=False, timeout=None, headers={"User-Agent": "palimpsest"}
    )
    return client


class _Sending:
    """Whether anything of the request may have left this machine."""

    def __init__(self) -> None:
        self.has_begun = False

    async def note(self, name: str, _: object) -> None:
        """Is told of each step of the transport."""
        if name.endswith("send_request_headers.started"):
            self.has_begun = True


class _Answer:
    """What has come of an answer. The status stands as soon as it is there, whatever becomes of the rest."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.body = bytearray()

    async def read(self, client: "httpx2.AsyncClient", request: "httpx2.Request") -> None:
        response = await client.send(request, stream=True)
        self.status = response.status_code
        try:
            async for piece in response.aiter_raw():
                self.body += piece
                if len(self.body) > MAX_BODY_BYTES:
                    self.body.clear()  # half of it says nothing
                    return
        finally:
            await response.aclose()


def _told(body: bytes) -> Mapping[str, Any]:
    """What a body says, if it is an object of JSON; else nothing."""
    try:
        told = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _tokens(told: object) -> int | None:
    return told if isinstance(told, int) and not isinstance(told, bool) and 0 <= told <= MOST_TOKENS else None


def _operation(told: object) -> str:
    return told if isinstance(told, str) and 0 < len(told) <= MAX_OPERATION_CHARS and told.isprintable() else ""
