"""Files that are not written over by mistake, and models in them."""

from __future__ import annotations

from dataclasses import is_dataclass
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from sklearn.base import BaseEstimator

from likewise._fit_validation import check_fitted
from likewise._validation import PATH, in_a_line
from likewise._writing import atomic_write
from likewise.exceptions import FileError, InvalidTypeError
from likewise.guarantees.bounds import Bound
from likewise.metrics.base import Metric

_VERSIONED = ("likewise", "numpy", "scikit-learn")
_FORMAT = 1


def check_free(out: str | Path, *inputs: str | Path | None, force: bool = False) -> None:
    """Raise if `out` is one of the inputs of a command, or a file that is there already and may not be replaced."""
    path = Path(out)
    for given in inputs:
        if given is not None and Path(given).exists() and path.exists() and path.samefile(given):
            raise FileError(f"{out} is read by this command, so it is not written over. Give another --out.")
    if path.is_dir():
        raise FileError(f"{out} is a directory. Give the name of a file as --out.")
    if path.exists() and not force:
        raise FileError(f"{out} is there already. Give another --out, or --force to replace it.")


def free_name(path: str | Path) -> Path:
    """A path at which nothing is: this one, or one with a number.

    Examples
    --------
    >>> free_name("no such directory/model.skops")
    PosixPath('no such directory/model.skops')
    """
    path, n = Path(path), 1
    found = path
    while found.exists():
        n += 1
        found = path.with_name(f"{path.stem}-{n}{path.suffix}")
    return found


def save_model(model: Any, path: str | Path) -> None:
    """Save a fitted model, with the versions that it needs; never as a pickle.

    Parameters
    ----------
    model : fitted estimator
        Of likewise, or of scikit-learn.
    path : path-like
        Written whole or not at all; a file that is there is replaced.
    """
    import skops.io

    if not isinstance(model, BaseEstimator):
        raise InvalidTypeError(f"model must be a fitted estimator; got {in_a_line(model)}.")
    check_fitted(model)
    document = {"format": _FORMAT, "versions": {name: version(name) for name in _VERSIONED}, "model": model}
    data = skops.io.dumps(document)
    unknown = [kind for kind in skops.io.get_untrusted_types(data=data) if not _allowed(kind)]
    if unknown:
        raise FileError(
            f"Cannot save the model: it holds objects of type {unknown[0]}, which a likewise file may not. "
            "Use models of scikit-learn and likewise."
        )
    with atomic_write(path) as temporary:
        temporary.write_bytes(sealed(data))


def load_model(path: str | Path) -> Any:
    """Load a model, if it holds nothing but known types and was saved with fitting versions.

    Parameters
    ----------
    path : path-like
        A file that `save_model` or the command line has written.
    """
    PATH.check("path", path)
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise FileError(f"There is no model file {path}. Make one with likewise enforce.") from None
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror}.") from None
    return model_from_bytes(data, str(path))


def load_inner(path: str | Path) -> Any:
    """Load somebody's own fitted scikit-learn model, saved with skops, if it holds nothing but known types."""
    import skops.io

    try:
        data = Path(path).read_bytes()
        unknown = [kind for kind in skops.io.get_untrusted_types(data=data) if not _allowed(kind)]
        model = None if unknown else skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
    except FileNotFoundError:
        raise FileError(f"There is no model file {path}.") from None
    except Exception:  # whatever a damaged archive leads to
        raise FileError(
            f"{path} is not a scikit-learn model saved with skops, or it is damaged. Save one with skops.io.dump."
        ) from None
    if unknown:
        raise FileError(f"{path} holds objects of type {unknown[0]}, which likewise does not load.")
    if not hasattr(model, "predict"):
        raise FileError(f"{path} must hold a fitted scikit-learn model; it holds a {type(model).__name__}.")
    return model


def model_from_bytes(data: bytes, name: str) -> Any:
    """Load a model from the content of a file; `name` is for errors."""
    import skops.io

    try:
        types = skops.io.get_untrusted_types(data=data)
        unknown = [kind for kind in types if not _allowed(kind)]
        document = None if unknown else skops.io.loads(data, trusted=types)
    except Exception:  # whatever a damaged archive leads to
        raise FileError(
            f"{name} is not a model saved by likewise, or it is damaged. Make one with likewise enforce."
        ) from None
    if unknown:
        raise FileError(f"{name} holds objects of type {unknown[0]}, which likewise does not load.")
    if not isinstance(document, dict) or document.get("format") != _FORMAT or "model" not in document:
        raise FileError(f"{name} is not a model saved by likewise.")
    versions = document.get("versions")
    if not isinstance(versions, dict) or versions.keys() != {*_VERSIONED}:
        raise FileError(f"{name} does not say with which versions it was saved, so it is damaged.")
    for package, saved in versions.items():
        if _minor(str(saved)) != _minor(version(package)):
            raise FileError(
                f"{name} was saved with {package} {saved}; here is {version(package)}, with which its scores could "
                f"differ. Install {package}=={saved}, or make the model again."
            )
    with ZipFile(BytesIO(data)) as archive:
        if archive.comment != _sum_of(archive):
            raise FileError(
                f"{name} was changed after it was saved, so that its promise may no longer hold. Make the model again."
            )
    return document["model"]


def sealed(data: bytes) -> bytes:
    """The same archive, with a sum over its contents: a number that is changed in a file would void its promise."""
    content = BytesIO(data)
    with ZipFile(content, "a") as archive:
        archive.comment = _sum_of(archive)
    return content.getvalue()


def _sum_of(archive: ZipFile) -> bytes:
    total = sha256()
    for name in sorted(archive.namelist()):
        total.update(sha256(name.encode()).digest() + sha256(archive.read(name)).digest())
    return b"sha256:" + total.hexdigest().encode()


# What a model file may hold beyond what skops trusts: our own classes, and the parts of models that hold nothing but
# numbers.
_OWN = tuple(
    f"likewise.{part}."
    for part in (
        "_links",
        "additive",
        "base",
        "calibration",
        "dummy",
        "guarantees",
        "inspection",
        "lipschitz",
        "metrics",
        "projection",
        "smoothing",
    )
)
_FOREIGN = frozenset(
    {
        "numpy.dtype",
        "sklearn.compose._column_transformer._RemainderColsList",  # a list of numbers, in scikit-learn 1.6
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
    }
)


def _allowed(kind: str) -> bool:
    """Whether files may hold objects of this type.

    Of our own: estimators, metrics, curves and frozen dataclasses, whose state is data. Nothing of a file is run.
    """
    if kind in _FOREIGN or not kind.startswith(_OWN):
        return kind in _FOREIGN
    module, _, name = kind.rpartition(".")
    try:
        own = getattr(import_module(module), name, None)
    except ImportError:
        return False
    return isinstance(own, type) and (issubclass(own, (BaseEstimator, Bound, Metric)) or is_dataclass(own))


def _minor(text: str) -> tuple[str, ...]:
    return tuple(text.split(".")[:2])
