"""Saving and loading models, and output files that are not overwritten by mistake."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from sklearn.base import BaseEstimator

from likewise._fit_validation import check_fitted
from likewise._validation import PATH, short_repr
from likewise._writing import atomic_write
from likewise.exceptions import FileError, InvalidTypeError, UnprovableError
from likewise.kernel.bounds import Bound
from likewise.kernel.guarantee import Guarantee
from likewise.metrics.base import Metric

_VERSIONED = ("likewise", "numpy", "scikit-learn")
_FORMAT = 2  # 1: likewise 0.2, some of whose guarantees were wrong


def check_output_path(out: str | Path, *inputs: str | Path | None, force: bool = False) -> None:
    """Raise if `out` is an input of the command, a directory, or (without `force`) an existing file."""
    path = Path(out)
    for given in inputs:
        if given is not None and Path(given).exists() and path.exists() and path.samefile(given):
            raise FileError(f"{out} is an input of this command, so it is not overwritten. Give another --out.")
    if path.is_dir():
        raise FileError(f"{out} is a directory. Give the name of a file as --out.")
    if path.exists() and not force:
        raise FileError(f"{out} exists already. Give another --out, or --force to replace it.")


def unused_path(path: str | Path) -> Path:
    """This path, or one with a number appended, at which no file exists.

    Examples
    --------
    >>> unused_path("no such directory/model.skops")
    PosixPath('no such directory/model.skops')
    """
    path, n = Path(path), 1
    found = path
    while found.exists():
        n += 1
        found = path.with_name(f"{path.stem}-{n}{path.suffix}")
    return found


def save_model(model: Any, path: str | Path) -> None:
    """Save a fitted model with skops, never as a pickle, and record the versions it needs.

    Parameters
    ----------
    model : fitted estimator
        Of likewise, or of scikit-learn.
    path : path-like
        Written atomically; an existing file is replaced.
    """
    import skops.io

    if not isinstance(model, BaseEstimator):
        raise InvalidTypeError(f"model must be a fitted estimator; got {short_repr(model)}.")
    check_fitted(model)
    document = {"format": _FORMAT, "versions": {name: version(name) for name in _VERSIONED}, "model": model}
    try:
        data = skops.io.dumps(document)
    except TypeError as error:  # of what cannot be written at all, such as the index of a table
        raise FileError(
            f"Cannot save the model: it holds an object that no file can hold ({error}). Use models of scikit-learn "
            "and likewise, and metrics that are not functions."
        ) from None
    unknown = [kind for kind in skops.io.get_untrusted_types(data=data) if not _allowed(kind)]
    if unknown:
        raise FileError(
            f"Cannot save the model: it holds objects of type {unknown[0]}, which likewise would not load. "
            "Use models of scikit-learn and likewise, and text or numbers as categories."
        )
    with atomic_write(path) as temporary:
        temporary.write_bytes(with_checksum(data))


def load_model(path: str | Path) -> Any:
    """Load a model, if it holds only known types and was saved with compatible versions.

    Parameters
    ----------
    path : path-like
        A file written by `save_model` or the command line.
    """
    PATH.check("path", path)
    return model_from_bytes(_read_bytes(path, " Make one with likewise enforce."), str(path))


def load_inner(path: str | Path) -> Any:
    """Load a fitted scikit-learn model saved with skops, if it holds only known types."""
    model = _loads(
        _read_bytes(path), str(path), "a scikit-learn model saved with skops", "Save one with skops.io.dump."
    )
    if not hasattr(model, "predict"):
        raise FileError(f"{path} must hold a fitted scikit-learn model; it holds a {type(model).__name__}.")
    return model


def model_from_bytes(data: bytes, name: str) -> Any:
    """Load a model from the content of a file; `name` is for errors."""
    if _format_of(data) == 1:
        raise FileError(
            f"{name} was saved by likewise 0.2, which stated some guarantees that did not hold (docs/trust.md). Fit "
            "the model again and save it, with likewise enforce or with fit and save_model."
        )
    document = _loads(data, name, "a model saved by likewise", "Make one with likewise enforce.")
    if not isinstance(document, dict) or document.get("format") != _FORMAT or "model" not in document:
        raise FileError(f"{name} is not a model saved by likewise.")
    versions = document.get("versions")
    if not isinstance(versions, dict) or versions.keys() != {*_VERSIONED}:
        raise FileError(f"{name} does not say with which versions it was saved, so it is damaged.")
    for package, saved in versions.items():
        if _minor(str(saved)) != _minor(version(package)):
            raise FileError(
                f"{name} was saved with {package} {saved}, and {version(package)} is installed, with which its scores "
                f"could differ. Install {package}=={saved}, or make the model again."
            )
    with ZipFile(BytesIO(data)) as archive:
        if archive.comment != _checksum(archive):
            raise FileError(
                f"{name} was changed after it was saved, so its guarantee may no longer hold. Make the model again."
            )
    model = document["model"]
    if hasattr(model, "scorer_"):
        try:
            _ = model.guarantee_  # a file holds numbers, and what follows from them is proven here
        except UnprovableError as problem:
            raise FileError(f"{name} holds a model outside its metric. {problem} Make the model again.") from None
    return model


def _format_of(data: bytes) -> Any:
    """Format of a model file, read before any of its types is loaded; None if there is none."""
    try:
        with ZipFile(BytesIO(data)) as archive:
            return json.loads(json.loads(archive.read("schema.json"))["content"]["format"]["content"])
    except Exception:  # a damaged archive can raise anything; the loader says what it is
        return None


def _read_bytes(path: str | Path, hint: str = "") -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise FileError(f"There is no model file {path}.{hint}") from None
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror}.") from None


def _loads(data: bytes, name: str, kind: str, hint: str) -> Any:
    """Load an object from skops bytes, if it holds only known types."""
    try:
        return _OwnTypes(data).load()
    except Exception:  # it holds other types, or it is damaged
        import skops.io

    try:
        types = skops.io.get_untrusted_types(data=data)
        unknown = [each for each in types if not _allowed(each)]
        found = None if unknown else skops.io.loads(data, trusted=types)
    except Exception:  # a damaged archive can raise anything
        raise FileError(f"{name} is not {kind}, or it is damaged. {hint}") from None
    if unknown:
        raise FileError(f"{name} holds objects of type {unknown[0]}, which likewise does not load.")
    return found


def with_checksum(data: bytes) -> bytes:
    """The archive with a checksum of its contents, since a changed number would void the guarantee."""
    content = BytesIO(data)
    with ZipFile(content, "a") as archive:
        archive.comment = _checksum(archive)
    return content.getvalue()


def _checksum(archive: ZipFile) -> bytes:
    total = sha256()
    for name in sorted(archive.namelist()):
        total.update(sha256(name.encode()).digest() + sha256(archive.read(name)).digest())
    return b"sha256:" + total.hexdigest().encode()


# Types allowed in model files beyond those that skops trusts: our own, and parts of models that hold only numbers.
_PACKAGES = "additive base calibration decisions dummy kernel inspection lipschitz metrics projection smoothing"
_OWN = tuple(f"likewise.{name}." for name in _PACKAGES.split())
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


_DATA = (BaseEstimator, Bound, Metric)  # a guarantee is none: it follows from what a file holds, or not at all


def _allowed(kind: str) -> bool:
    """Whether files may hold this type; of our own, only types whose state is data."""
    if kind in _FOREIGN or not kind.startswith(_OWN):
        return kind in _FOREIGN
    module, _, name = kind.rpartition(".")
    try:
        own = getattr(import_module(module), name, None)
    except ImportError:
        return False
    return isinstance(own, type) and own is not Guarantee and (issubclass(own, _DATA) or is_dataclass(own))


class _OwnTypes:
    """Reads skops files that hold only likewise's own types, NumPy arrays and JSON values, as skops does.

    To import skops is to import all of scikit-learn, from which it makes its list of trusted types. That takes longer
    than loading a model and scoring with it. Raises at everything else, which is left to skops.
    """

    def __init__(self, data: bytes) -> None:
        self.archive = ZipFile(BytesIO(data))
        self.made: dict[Any, Any] = {}

    def load(self) -> Any:
        with self.archive:
            schema = json.loads(self.archive.read("schema.json"))
            if schema["protocol"] != _SKOPS_PROTOCOL:
                raise FileError(f"The protocol of skops must be {_SKOPS_PROTOCOL}.")
            return self._object(schema)

    def _object(self, node: Mapping[str, Any]) -> Any:
        """The object of a node; a repeated identity is the same object."""
        identity = node["__id__"]
        if identity not in self.made:
            self.made[identity] = self._make(node)
        return self.made[identity]

    def _make(self, node: Mapping[str, Any]) -> Any:
        match node["__loader__"], f"{node['__module__']}.{node['__class__']}":
            case "JsonNode", _:
                return json.loads(node["content"])
            case "ListNode", "builtins.list":
                return [self._object(each) for each in node["content"]]
            case "TupleNode", "builtins.tuple":
                return tuple(self._object(each) for each in node["content"])
            case "DictNode", "builtins.dict":
                kinds = self._object(node["key_types"])
                items = zip(kinds, node["content"].items(), strict=True)
                return {kind(key): self._object(value) for kind, (key, value) in items}
            case "TypeNode", kind if kind in _KEY_TYPES:
                return _KEY_TYPES[kind]
            case "NdArrayNode", kind if kind in _ARRAY_TYPES and node["type"] == "numpy":
                array = np.load(BytesIO(self.archive.read(node["file"])), allow_pickle=False)
                return array if kind == "numpy.ndarray" else _ARRAY_TYPES[kind](array)
            case "NdArrayNode", "numpy.ndarray" if node["type"] == "json":
                (n,) = self._object(node["shape"])
                array = np.empty(n, dtype=object)
                for i, each in enumerate(node["content"]):
                    array[i] = self._object(each)
                return array
            case "ObjectNode", kind if kind.startswith(_OWN) and _allowed(kind):
                return self._own(kind, self._object(node["content"]) if "content" in node else None)
            case _, kind:
                raise FileError(f"{kind} is not a type of likewise.")

    @staticmethod
    def _own(kind: str, state: Any) -> Any:
        module, _, name = kind.rpartition(".")
        own = getattr(import_module(module), name)
        instance = own.__new__(own)
        if state is not None and hasattr(instance, "__setstate__"):
            instance.__setstate__(state)
        elif state is not None:
            instance.__dict__.update(state)
        return instance


_SKOPS_PROTOCOL = 2
_KEY_TYPES: dict[str, Any] = {"builtins.str": str, "builtins.int": int, "builtins.float": float, "builtins.bool": bool}
_ARRAY_TYPES: dict[str, Any] = {
    f"numpy.{kind.__name__}": kind for kind in (np.ndarray, np.bool_, np.int64, np.float64, np.str_)
}


def _minor(text: str) -> tuple[str, ...]:
    return tuple(text.split(".")[:2])
