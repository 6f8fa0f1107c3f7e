"""The exceptions of besom. Their messages say what is wrong and what to do."""


class Error(Exception):
    """The base class of all exceptions that are besom's own."""


class BuildError(Error, ValueError):
    """No filter can be built with these parameters."""


class FullError(Error):
    """The filter has no room for another key. It is unchanged."""


class MergeError(Error, ValueError):
    """Two filters cannot be merged. Both are unchanged."""


class FormatError(Error, ValueError):
    """A file, or some bytes, are not a filter, or not a sound one."""


class UnsupportedError(Error, TypeError):
    """Filters of this kind cannot do this."""


class RemoteError(Error):
    """The filter has no remote, or one that holds other keys than the filter. The filter is unchanged."""


class DamagedError(Error):
    """A filter holds what no filter does: it was opened, without a check, on a file that is damaged."""


class StoreError(Error):
    """A store failed, or the database below it."""


# They are shown, and pickled, under the name that users import them by.
for _class in (
    Error,
    BuildError,
    FullError,
    MergeError,
    FormatError,
    UnsupportedError,
    RemoteError,
    DamagedError,
    StoreError,
):
    _class.__module__ = "besom"
del _class
