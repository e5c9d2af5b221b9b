"""Which calibrations hold for a run: those of its methods' settings and wording."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from pipelines.methods.registry import different, get_method
from pipelines.prompts import Wording, used_wording
from pipelines.run.calibrations import Calibration
from pipelines.run.events import MethodSpec


def conditions(method: str, settings: Mapping[str, Any], wording: Wording, setting: str) -> str:
    """Return what decides the scores of a method beside its models: 16 hexadecimal digits.

    It stands for the settings that differ from the defaults, but for `setting`, the threshold of
    the score, and for the texts of `wording`, which was checked, that the method uses in place of
    shipped prompts. Raises InvalidInputError for a method or a setting that does not exist.
    """
    values = different(method, {name: one for name, one in settings.items() if name != setting})
    texts = used_wording(wording, get_method(method).prompts)
    said = json.dumps([method, values, texts], sort_keys=True, ensure_ascii=True)
    return sha256(said.encode()).hexdigest()[:16]


def holding(
    calibrations: Iterable[Calibration], methods: Iterable[MethodSpec], wording: Wording
) -> tuple[Calibration, ...]:
    """Return those of `calibrations` that hold here with this wording; raises as `conditions`."""
    ran = {one.name: one.settings for one in methods}
    return tuple(
        one
        for one in calibrations
        if one.method in ran
        and one.conditions == conditions(one.method, ran[one.method], wording, one.setting)
    )
