"""Create private files and folders for state: accessible to their owner only, from the first moment, whatever the
umask.

A folder that its group may write to is shared on purpose: new entries are accessible to the group too. All others have
no access.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

_OWNER_FILE, _OWNER_FOLDER = 0o600, 0o700


def make_private(path: str) -> bool:
    """Make an empty file that its owner alone may read and write; False where something has this name already.

    Raises:
        OSError: it can't be made there.
    """
    try:
        os.close(_new(path))
    except FileExistsError:
        return False
    return True


def open_private(path: str) -> int:
    """Make a file and return its descriptor, for writing: for its owner, and the group of a folder that is shared.

    Raises:
        OSError: it is there already, or can't be made.
    """
    descriptor = _new(path)
    shared = _shared(os.path.dirname(path))
    if shared:
        os.fchmod(descriptor, _OWNER_FILE | shared & 0o060)
    return descriptor


def make_private_folders(folder: str) -> None:
    """Make a folder with those above it that are missing; those that are there stay as they are.

    Raises:
        OSError: one can't be made.
    """
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    make_private_folders(above)
    with suppress(FileExistsError):  # another process has made it meanwhile
        os.mkdir(folder, _OWNER_FOLDER)
        os.chmod(folder, stat.S_IMODE(os.stat(folder).st_mode) & stat.S_ISGID | _OWNER_FOLDER | _shared(above))


def wider_mode(path: str) -> int | None:
    """Return the permissions of a file that is accessible to others than its owner; None if it is private, or gone."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return None
    return mode if mode & 0o077 else None


def _new(path: str) -> int:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _OWNER_FILE)
    os.fchmod(descriptor, _OWNER_FILE)  # a umask may have taken more away
    return descriptor


def _shared(folder: str) -> int:
    """Return what its group may do in a folder to which it may write; /tmp and its like are not shared."""
    mode = os.stat(folder).st_mode
    return mode & 0o070 if mode & stat.S_IWGRP and not mode & stat.S_ISVTX else 0
