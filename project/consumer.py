"""The part of a worker that talks to the broker, made to outlive a broker that is away."""

from typing import Any

import structlog
from celery.worker import consumer, state

logger = structlog.get_logger(__name__)


class Consumer(consumer.Consumer):
    """Where Celery's own ends its worker: closing the lost connection asks the broker that is away, and fails (Celery 5.7, Redis)."""

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        # What runs can't be acknowledged on the lost connection: trying to would end the worker as well. Its row says that it was done.
        for request in (*state.reserved_requests, *state.active_requests):
            request.acknowledged = True
        try:
            super().on_connection_error_after_connected(exc)
        except Exception as error:  # noqa: BLE001  whatever it is: the connection is given up already, and the next one is made anew
            logger.warning("broker_connection_not_closed", error=type(error).__name__)

    def on_close(self) -> Any:
        try:
            return super().on_close()
        except Exception as error:  # noqa: BLE001  as above
            logger.warning("broker_connection_not_closed", error=type(error).__name__)
