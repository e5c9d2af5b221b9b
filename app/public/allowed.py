"""What visitors of the Space may take, from the environment of the machine that serves it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, ValidationError

from pipelines.errors import InvalidInputError
from pipelines.run.limits import Limits
from pipelines.types import Frozen

__all__ = ["Allowed"]

_PREFIX = "VERISCOPE_"


class Allowed(Frozen):
    """Bounds that keep a small machine usable by many. Each is set as VERISCOPE_<NAME>.

    `places` runs go on at once, `each` of one visitor, while up to `waiting` stand in line. A run
    may take `seconds` and write `tokens`; it is stopped `unwatched` seconds after nobody looks at
    it any more, and forgotten after `keep_hours`. `custom_servers` lets visitors name a model
    server of their own on the public internet.
    """

    places: Annotated[int, Field(ge=1)] = 2
    each: Annotated[int, Field(ge=1)] = 1
    waiting: Annotated[int, Field(ge=0)] = 40
    seconds: Annotated[float, Field(gt=0)] = 240.0
    tokens: Annotated[int, Field(gt=0)] = 8000
    unwatched: Annotated[float, Field(gt=0)] = 10.0
    keep_hours: Annotated[float, Field(gt=0)] = 24.0
    custom_servers: bool = False

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Allowed:
        """The bounds that `environment` sets; raises InvalidInputError naming what is wrong."""
        values = {
            name: environment[variable]
            for name in cls.model_fields
            if environment.get(variable := _PREFIX + name.upper())
        }
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            variable = _PREFIX + str(first["loc"][0]).upper()
            raise InvalidInputError(
                f"{variable} cannot be used: {first['msg']}.",
                remedy="Correct it, or leave it out for the default.",
            ) from None

    @property
    def limits(self) -> Limits:
        """What one run may take."""
        return Limits(seconds=self.seconds, tokens=self.tokens)
