"""Reading the data of an event: a shape for each type, and one error that names the type, the field and what is allowed."""

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from sessions_app.api.errors import ApiError


class Data(BaseModel):
    """What a type takes, and nothing else."""

    model_config = ConfigDict(extra="forbid", strict=True)


class OpenData(BaseModel):
    """What a type needs; what an agent tells beyond that is passed over."""

    model_config = ConfigDict(extra="ignore", strict=True)


Shape = TypeVar("Shape", bound=BaseModel)


def read_data(event_type: str, shape: type[Shape], data: dict[str, Any]) -> Shape:
    """The data in their shape. Raises `ApiError` (400)."""
    try:
        return shape.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(step) for step in first["loc"])
        says = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
        raise invalid(event_type, f"data.{field}" if field else "data", f"{field or 'data'}: {says}") from error


def invalid(event_type: str, field: str, why: str) -> ApiError:
    """The error of data that an event can't have."""
    return ApiError("invalid_input", f"{event_type}: {why}. Nothing was done.", field=field)
