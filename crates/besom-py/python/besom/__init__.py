"""Membership filters that repair their false positives.

A filter sits in memory in front of slow data and answers "certainly absent" or "maybe present". An ordinary filter repeats each
of its false positives forever; an adaptive one repairs every false positive that it is told of.

- ``Filter``: a plain filter, fast, with removal.
- ``AdaptiveFilter``: repairs what ``adapt`` tells it of.
- ``Guard``: an adaptive filter in front of any mapping; it asks, looks up and repairs by itself.
- ``Store``: a key-value store in a file behind an adaptive filter.
- ``ExactList``: two lists that are known; no mistakes at all.
- ``build`` and ``open``: filters of every kind, by name and by file.

Keys are ``str``, ``bytes``, ``int`` of 64 bits, ``uuid.UUID``, and tuples of these.
"""

import os as _os
from collections.abc import MutableMapping as _MutableMapping

from . import _besom
from ._besom import (
    AdaptiveFilter,
    ExactList,
    Filter,
    __version__,
    build,
    check,
    inspect,
    key_bytes,
    key_hash,
    kinds,
)
from ._errors import (
    BuildError,
    DamagedError,
    Error,
    FormatError,
    FullError,
    MergeError,
    RemoteError,
    StoreError,
    UnsupportedError,
)


if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_besom._forked)


class Guard(_besom.Guard, _MutableMapping):
    __doc__ = _besom.Guard.__doc__


class Store(_besom.Store, _MutableMapping):
    __doc__ = _besom.Store.__doc__

    def items(self):
        """Iterates over pairs of key and value, as they are now."""
        return self._items()


def open(path, *, seed=None, index=None, check=True):
    from . import _share

    _share.register()
    return _besom.open(path, seed=seed, index=index, check=check)


open.__doc__ = _besom.open.__doc__


def compare(keys, queries, **options):
    from ._compare import compare

    return compare(keys, queries, **options)


compare.__doc__ = """Plays a stream of queries against filters in front of the keys, and says how many useless look-ups each one lets through.

    See ``besom._compare.Comparison`` for what it returns: a table, and a picture with ``plot()``.
    """

__all__ = [
    "AdaptiveFilter",
    "BuildError",
    "DamagedError",
    "Error",
    "ExactList",
    "Filter",
    "FormatError",
    "FullError",
    "Guard",
    "MergeError",
    "RemoteError",
    "Store",
    "StoreError",
    "UnsupportedError",
    "__version__",
    "build",
    "check",
    "compare",
    "inspect",
    "key_bytes",
    "key_hash",
    "kinds",
    "open",
]
