"""Names of topics. Kafka: `org.apache.kafka.common.internals.Topic`."""

from __future__ import annotations

import re
from typing import Final

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_topic_name(name: object) -> bool:
    """Whether Kafka allows a topic of this name. Such a name, with a partition behind it, is one part of a path.

    Kafka: `Topic.validate`.
    """
    return isinstance(name, str) and _LEGAL.fullmatch(name) is not None and name not in (".", "..")
