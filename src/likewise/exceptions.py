"""Exceptions. Every message names the parameter, the rule, the value given, and what to do.

```
LikewiseError
├── InvalidInputError (ValueError)        a value that cannot be used
│   └── FileError                         a file that cannot be read, written or does not fit
├── InvalidTypeError (TypeError)          an object of the wrong kind
│   └── UnprovableError                   a model, or numbers, from which no bound follows
├── MissingExtraError (ImportError)       a part of likewise that is not installed
├── MissingDataError (FileNotFoundError)  a data set that was not found
├── DownloadError (ConnectionError)       a data set that could not be downloaded
└── UnsolvedError (RuntimeError)          the solver failed
```
Each is also the built-in error in brackets. Methods of an unfitted estimator raise scikit-learn's `NotFittedError`,
which is then a `LikewiseError` too.
"""

from __future__ import annotations

from typing import Self


class LikewiseError(Exception):
    """Base of all exceptions of likewise.

    Attributes
    ----------
    command_text : str or None
        The message for the command line, where what to do is an option or a file rather than Python.
    """

    command_text: str | None = None

    def in_commands(self, text: str) -> Self:
        """Set the message for the command line; returns the exception."""
        self.command_text = text
        return self


class InvalidInputError(LikewiseError, ValueError):
    """A value that cannot be used: out of range, of the wrong shape, or in conflict with another."""


class FileError(InvalidInputError):
    """A file that cannot be read or written, or does not fit."""


class InvalidTypeError(LikewiseError, TypeError):
    """An object of the wrong kind."""


class UnprovableError(InvalidTypeError):
    """A model whose constant cannot be proven, or numbers from which no guarantee follows."""


class MissingExtraError(LikewiseError, ImportError):
    """An optional dependency that is not installed."""


class MissingDataError(LikewiseError, FileNotFoundError):
    """A data set that was not found."""


class DownloadError(LikewiseError, ConnectionError):
    """A data set that could not be downloaded."""


class UnsolvedError(LikewiseError, RuntimeError):
    """The solver failed."""
