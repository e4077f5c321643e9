"""Files of properties in Java's format. Kafka: `Utils.loadProps`, `PropertiesUtils.readPropertiesFile`."""

from __future__ import annotations

import re
from typing import Final

_ESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def properties_in(text: str) -> dict[str, str]:
    """The properties in a text, as `java.util.Properties.load` reads them. Of a key that stands twice, the last one."""
    found: dict[str, str] = {}
    whole = ""
    for line in (*text.splitlines(), ""):
        stripped = line.lstrip(" \t\f")
        if not whole and stripped[:1] in ("", "#", "!"):
            continue
        whole += stripped
        if (len(whole) - len(whole.rstrip("\\"))) % 2:
            whole = whole[:-1]
            continue
        parts = re.fullmatch(r"((?:[^=:\s\\]|\\.)*)[ \t\f]*[=: \t\f]?[ \t\f]*(.*)", whole, re.DOTALL)
        assert parts is not None, "every part may be empty"
        found[_unescaped(parts[1])] = _unescaped(parts[2])
        whole = ""
    return found


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        return chr(int(match[2], 16)) if match[2] else _ESCAPED.get(match[1], match[1])

    return re.sub(r"\\(u([0-9a-fA-F]{4})|.)", plain, text, flags=re.DOTALL)
