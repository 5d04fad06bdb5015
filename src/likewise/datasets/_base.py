"""Shared by the loaders: finding a file (user directories, then a checked download) and the Bunch they return."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from likewise._optional import need
from likewise.exceptions import DownloadError, InvalidInputError, MissingDataError


@dataclass(frozen=True)
class Source:
    """One file of a data set.

    Attributes
    ----------
    names : tuple of str
        Accepted file names, the original's first.
    origin : str
        Where to get it by hand.
    url, sha256 : str or None
        Address of the original and its hash. Without a known hash nothing is downloaded, because a silent change of
        the file would go unnoticed.
    """

    names: tuple[str, ...]
    origin: str
    url: str | None = None
    sha256: str | None = None


def find(source: Source, data_home: str | os.PathLike[str] | None) -> Path:
    """Return the path of a file, from `data_home`, ``LIKEWISE_DATA`` or a download, in this order.

    Files in the user's own directory are not checked; downloads are compared with the hash.
    """
    homes = _homes(data_home)
    for home in homes:
        for name in source.names:
            if (home / name).is_file():
                return home / name
    if source.url is None:
        raise MissingDataError(_instructions(source, homes, "it cannot be downloaded automatically"))
    return _download(source, homes)


def table(path: Path, columns: Sequence[str], read: Callable[[Path], pd.DataFrame]) -> pd.DataFrame:
    """Read a CSV and select columns; an error names the file and what is missing from it."""
    try:
        frame = read(path)
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InvalidInputError(f"{path} must be a CSV file; reading it failed: {error}") from error
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise InvalidInputError(
            f"{path} must have the columns of the original; missing: {', '.join(missing)}. "
            "Get the original file again, or remove this one from the directory."
        )
    return frame[list(columns)]


def make_bunch(
    data: pd.DataFrame,
    target: pd.Series[Any],
    *,
    target_names: list[str],
    units: dict[str, str],
    licence: str,
    descr: str | None,
    **more: Any,
) -> Bunch:
    """Assemble a Bunch with the fields of scikit-learn's loaders, and `units` and `licence`.

    `descr` is the docstring of the loader's module.
    """
    return Bunch(
        data=data,
        target=target,
        frame=pd.concat([data, target], axis=1),
        feature_names=list(data.columns),
        target_names=target_names,
        units={name: units[name] for name in data.columns},
        licence=licence,
        DESCR=descr,
        **more,
    )


def _homes(data_home: str | os.PathLike[str] | None) -> list[Path]:
    if data_home is not None:
        home = Path(data_home).expanduser()
        if not home.is_dir():
            raise MissingDataError(
                f"data_home must be an existing directory; got {str(home)!r}. Create it, or leave data_home out."
            )
        return [home]
    variable = os.environ.get("LIKEWISE_DATA")
    return [Path(variable).expanduser()] if variable else []


def _download(source: Source, homes: list[Path]) -> Path:
    pooch = need("pooch", "A download")  # takes a while to import
    pooch.get_logger().setLevel("WARNING")
    try:
        return Path(
            pooch.retrieve(
                source.url,
                known_hash=f"sha256:{source.sha256}",
                fname=source.names[0],
                path=pooch.os_cache("likewise"),
            )
        )
    except ValueError as error:  # the hash did not match
        raise InvalidInputError(
            _instructions(source, homes, f"the file at its address has changed ({error})")
        ) from error
    except Exception as error:  # the exception type depends on the protocol and library
        raise DownloadError(_instructions(source, homes, f"the download failed ({error})")) from error


def _instructions(source: Source, homes: list[Path], reason: str) -> str:
    looked = f" in {', '.join(map(str, homes))}" if homes else ""
    known = " or ".join(source.names)
    address = f" ({source.url})" if source.url else ""
    return (
        f"{source.names[0]} was not found{looked}, and {reason}. "
        f"Get it from {source.origin}{address}, put it under the name {known} into a directory of yours, and pass "
        "that directory as data_home= or name it in the environment variable LIKEWISE_DATA."
    )
