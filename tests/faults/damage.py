"""Files that are not as they were written: cut off, bits turned over, values of other kinds, parts taken out.

>>> damaged('{"a": [1, 2]}', 1) == damaged('{"a": [1, 2]}', 1)
True
"""

from __future__ import annotations

import json
import random
from typing import Any

ODD: tuple[Any, ...] = (None, True, -1, 0, 1, 2**70, 1e300, "", "a", "\u0000", [], [[]], {}, {"a": 1}, [None], "1")


def damaged(text: str, seed: int) -> str:
    """The text of a JSON file with damage that follows from a seed; often it is JSON still."""
    draw = random.Random(seed)
    kind = draw.randrange(5)
    if kind == 0:
        return text[: draw.randrange(len(text))]
    if kind == 1:
        at = draw.randrange(len(text))
        return text[:at] + chr(ord(text[at]) ^ (1 << draw.randrange(7))) + text[at + 1 :]
    value = json.loads(text)
    for _ in range(draw.choice((1, 1, 2, 5))):
        value = _changed(value, draw)
    return json.dumps(value)


def _changed(value: Any, draw: random.Random) -> Any:
    """The value with one of its parts taken out or replaced, however deep."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        if draw.random() < 0.1:
            return {name: held for name, held in value.items() if name != key}
        return {**value, key: _changed(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.9:
        at = draw.randrange(len(value))
        return [*value[:at], *([] if draw.random() < 0.1 else [_changed(value[at], draw)]), *value[at + 1 :]]
    return draw.choice(ODD)
