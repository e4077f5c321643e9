"""Files of a capture that fail in the process that reads them. A module of few imports, which each process loads."""

import os
import signal

from txnlib.errors import UnreadableInputError


class Failing:
    """A file that cannot be read, as a process finds out."""

    extent = 1

    @property
    def kind(self):
        raise UnreadableInputError("a.log", "is gone", "Copy it again")

    resume = kind


class Deadly(Failing):
    """A file that the process does not survive, as one that takes all memory."""

    @property
    def kind(self):
        os.kill(os.getpid(), signal.SIGKILL)

    resume = kind
