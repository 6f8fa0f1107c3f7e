"""Filters that are maps of a file go to other processes of ``multiprocessing`` as the name of the file.

Ordinary pickles have the bytes, so that they last and travel; these live as long as the processes.
"""

import functools


@functools.cache
def register():
    """Teaches ``multiprocessing`` to send maps by name."""
    from multiprocessing.reduction import ForkingPickler

    from ._besom import AdaptiveFilter, ExactList, Filter

    for filter_class in (Filter, AdaptiveFilter, ExactList):
        ForkingPickler.register(filter_class, reduce)


def reduce(filter):
    file = filter._mapped_file()
    if file is None:
        return filter.__reduce__()
    path, length, modified = file
    return _open_same, (path, length, modified, filter.seed)


def _open_same(path, length, modified, seed):
    from . import _besom

    register()
    # It was checked when it was opened for the first time.
    return _besom.open(path, seed=seed, check=False, _identity=(length, modified))
