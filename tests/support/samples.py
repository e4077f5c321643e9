"""The sample files; sample_files/README.md describes them."""

from pathlib import Path

FILES = Path(__file__).parent / "sample_files"
#: The millisecond from which their timestamps count.
START = 1_710_120_000_000


def sample(name: str) -> bytes:
    return bytes.fromhex((FILES / f"{name}.hex").read_text())
