"""Local files and folders: listing a folder with each file once, and opening a file.

Only regular files are opened. A folder is entered once, by device and inode, so circular links end. A link that leads
out of the input is followed only on request, because the person who made the copy need not be the person who audits it.

A file name is bytes. For bytes that are not UTF-8, `shown` writes each as `\\xff`, which every table and terminal
accepts, and `native` reverses it.
"""

from __future__ import annotations

import io
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import Final, NamedTuple

_ESCAPED: Final = re.compile(r"\\x([0-9a-f]{2})")
_ODD: Final = re.compile("[\udc80-\udcff]|\\\\(?=x[0-9a-f]{2})")
#: Kind of a folder, and the `problem` of its entry.
FOLDER: Final = "folder"
#: Kinds of paths that are not regular files. Reading some of them blocks for ever, or never ends.
_KINDS: Final = (
    (stat.S_ISFIFO, "FIFO"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "character device"),
    (stat.S_ISBLK, "block device"),
    (stat.S_ISDIR, FOLDER),
)


class FolderEntry(NamedTuple):
    """A file, or another entry to report. `problem`: why it is not opened; None for a regular file."""

    root: str
    path: str
    size: int
    problem: str | None = None
    #: Device and inode of a local file, by whatever path it was reached.
    identity: tuple[int, int] | None = None
    #: Reached through a link. The file may also be listed under its own path.
    is_linked: bool = False
    #: Reached through a link that leads out of the input: its content is not repeated anywhere.
    is_outside: bool = False


#: What to do where the user of the audit may not open a file or a folder.
MAY_NOT: Final = "PERMISSION_DENIED: let the user of the audit read it, or audit as its owner"


def reason_of(error: BaseException, otherwise: str) -> str:
    """Why a file or folder could not be opened. `otherwise`: how the reason begins if it may be opened."""
    if isinstance(error, PermissionError):
        return MAY_NOT
    return f"{otherwise}: {getattr(error, 'strerror', None) or error}"


class FileShrunk(OSError):
    """A file now ends before bytes that it had when it was opened. `size`: its new size in bytes."""

    def __init__(self, size: int) -> None:
        super().__init__(f"it was cut to {size} bytes while it was read")
        self.size = size


# ---- Names


def shown(path: str) -> str:
    """A path of the operating system as UTF-8 text; `native` returns the path again."""
    return _ODD.sub(lambda odd: f"\\x{ord(odd[0]) & 0xFF:02x}", path)


def native(path: str) -> str:
    """The path of the operating system for text from `shown`."""
    if "\\x" not in path:
        return path
    return _ESCAPED.sub(lambda escaped: bytes([int(escaped[1], 16)]).decode(errors="surrogateescape"), path)


# ---- Opening


def is_link(path: str) -> bool:
    """Whether a local path is a symbolic link; False for a URI."""
    return os.path.islink(native(path))


def open_regular(path: str) -> io.FileIO:
    """A regular file, unbuffered. Raises OSError if it cannot be opened or is not a regular file."""
    name = native(path)
    _check_regular(os.stat(name))
    # Non-blocking, in case another kind of file has taken its place since then.
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check_regular(os.fstat(descriptor))
        return io.FileIO(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_at_most(stream: io.FileIO, position: int, count: int) -> bytes:
    """The bytes of an open file from `position` on: `count`, or up to its end."""
    content = os.pread(stream.fileno(), count, position)
    while len(content) < count and (more := os.pread(stream.fileno(), count - len(content), position + len(content))):
        content += more
    return content


def _check_regular(status: os.stat_result) -> None:
    kind = kind_of(status.st_mode)
    if kind is not None:
        raise OSError(f"it is a {kind}")


def kind_of(mode: int) -> str | None:
    """The kind of a path that is not a regular file, in words; None for a regular file."""
    if stat.S_ISREG(mode):
        return None
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "thing that is no file")


# ---- Listing


class Walk:
    """The files below some roots, in the order of paths, and then the targets of links.

    `enters_link` decides by the name of a link whether to enter a folder of the input through it, too, because files
    are recognised by the names of their folders.
    """

    def __init__(self, roots: Sequence[str], *, follow_links: bool, enters_link: Callable[[str], bool]) -> None:
        self._roots = roots
        self._real_roots = [os.path.realpath(native(root)) for root in roots]
        self._follow_links = follow_links
        self._enters_link = enters_link
        self._entered: set[tuple[int, int]] = set()
        self._links: deque[FolderEntry] = deque()

    def entries(self) -> Iterator[FolderEntry]:
        for root in self._roots:
            yield from self._below(FolderEntry(root, root, 0))
        # Folders first, because their files need no further link.
        linked_files, entered = [], set[tuple[int, int]]()
        while self._links:
            link = self._follow_link(self._links.popleft())
            if link.problem != FOLDER:
                linked_files.append(link)
            elif link.identity not in self._entered:
                yield from self._below(link._replace(is_linked=False))
            elif link.identity not in entered and self._enters_link(PurePath(link.path).name):
                entered.add(link.identity)
                linked_files += [found for found in self._listed(link) if found.problem != FOLDER]
        yield from linked_files

    def _below(self, top: FolderEntry) -> Iterator[FolderEntry]:
        """Everything below a folder. Not recursive, because folders may be nested deeper than function calls can be."""
        opened = [iter([self._entry(top, top.path)])]
        while opened:
            found = next(opened[-1], None)
            if found is None:
                opened.pop()
            elif found.problem != FOLDER:
                yield found
            elif found.identity is not None and found.identity not in self._entered:
                self._entered.add(found.identity)
                opened.append(self._listed(found))

    def _listed(self, folder: FolderEntry) -> Iterator[FolderEntry]:
        """The entries of a folder, without those of its subfolders. Links are kept for later."""
        try:
            with os.scandir(native(folder.path)) as listed:
                found = [(shown(entry.path), entry.is_symlink(), _is_folder(entry)) for entry in listed]
        except OSError as error:
            yield folder._replace(problem=reason_of(error, "CANNOT_LIST"), identity=None)
            return
        # A folder is sorted like its files, by its name with a slash after it.
        for path, is_link, _ in sorted(found, key=lambda item: item[0] + "/" * item[2]):
            if not is_link:
                yield self._entry(folder, path)
            elif not folder.is_linked:  # already seen under the folder's own path
                self._links.append(folder._replace(path=path, identity=None))

    def _follow_link(self, link: FolderEntry) -> FolderEntry:
        """The entry of a link's target."""
        found = self._entry(link._replace(is_linked=True), link.path)
        if found.problem is not None and found.problem != FOLDER and found.identity is None:
            return found
        target = os.path.realpath(native(link.path))
        if any(target == root or target.startswith(f"{root.rstrip('/')}/") for root in self._real_roots):
            return found
        if self._follow_links:
            return found._replace(is_outside=True)
        problem = f"LINK_OUT_OF_INPUT: leads to {shown(target)}, which is read with --follow-links only"
        return found._replace(size=0, problem=problem, identity=None)

    def _entry(self, parent: FolderEntry, path: str) -> FolderEntry:
        """The entry of a path; a folder has the problem FOLDER."""
        try:
            status = os.stat(native(path))
        except OSError as error:
            return parent._replace(path=path, size=0, problem=reason_of(error, "CANNOT_OPEN"), identity=None)
        kind = kind_of(status.st_mode)
        problem = kind if kind in (None, FOLDER) else f"NOT_A_REGULAR_FILE: it is a {kind}"
        if kind is None and not os.access(native(path), os.R_OK):
            problem = MAY_NOT
        size = status.st_size if kind is None else 0
        return parent._replace(path=path, size=size, problem=problem, identity=(status.st_dev, status.st_ino))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
