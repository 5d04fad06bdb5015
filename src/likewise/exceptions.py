"""What likewise raises. Every error names the parameter, the rule, what was given, and the cure.

```
LikewiseError
├── InvalidInputError (ValueError)        a value that cannot be used
│   └── FileError                         a file that cannot be read, written or does not fit
├── InvalidTypeError (TypeError)          an object of the wrong kind
│   └── UnprovableError                   a model whose constant cannot be proven
├── MissingExtraError (ImportError)       a part of likewise that is not installed
├── MissingDataError (FileNotFoundError)  a data set that is not at hand
├── DownloadError (ConnectionError)       a data set that could not be downloaded
└── UnsolvedError (RuntimeError)          a problem that the solver gave up
```
Each is also the built-in error in brackets, so code that catches that one goes on working. What an estimator raises
that was not fitted is scikit-learn's `NotFittedError`, and a `LikewiseError` too.
"""

from __future__ import annotations

from typing import Self


class LikewiseError(Exception):
    """Whatever likewise raises on purpose: catch this to catch all of it.

    Attributes
    ----------
    command_text : str or None
        The same for people at the command line, where the cure is an option or a file rather than Python.
    """

    command_text: str | None = None

    def in_commands(self, text: str) -> Self:
        """This error, with what the command line says in its place."""
        self.command_text = text
        return self


class InvalidInputError(LikewiseError, ValueError):
    """A value that cannot be used: out of range, of the wrong shape, or at odds with another."""


class FileError(InvalidInputError):
    """A file that cannot be read or does not fit; the message says which, why, and what to do."""


class InvalidTypeError(LikewiseError, TypeError):
    """An object of the wrong kind."""


class UnprovableError(InvalidTypeError):
    """The exact constant of a model cannot be proven; the message says why."""


class MissingExtraError(LikewiseError, ImportError):
    """A part of likewise that is not installed; the message has the command that installs it."""


class MissingDataError(LikewiseError, FileNotFoundError):
    """A data set that is not at hand; the message says where to get it and where to put it."""


class DownloadError(LikewiseError, ConnectionError):
    """A data set that could not be downloaded; the message says how to do without."""


class UnsolvedError(LikewiseError, RuntimeError):
    """A problem that the solver gave up; the message says what to change."""
