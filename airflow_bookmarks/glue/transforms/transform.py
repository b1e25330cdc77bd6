"""`GlueTransform`: what all classes of `awsglue.transforms` share."""

from __future__ import annotations

import inspect
from typing import Any

_OF_EVERY_TRANSFORM = {
    "transformation_ctx": ("String", "A unique name of this step; relationalize keeps its ids under it"),
    "info": ("String", "Text that is kept with each error record of this step"),
    "stageThreshold": ("Integer", "Errors of this step at which the call fails; 0 never fails"),
    "totalThreshold": ("Integer", "Errors up to and including this step at which the call fails; 0 never fails"),
}


class GlueTransform:
    """A step that takes frames and returns frames; a subclass says in `__call__` what it does.

    `apply` makes an instance and calls it. The `describe...` methods answer from the signature and the docstring of
    `__call__`, in the form that AWS documents.

    Example:
        mapped = ApplyMapping.apply(frame=orders, mappings=[("id", "long", "order_id", "string")])
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the step."""
        raise NotImplementedError(f"{self.name()} says no __call__")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Make an instance and call it with these arguments."""
        return cls()(*args, **kwargs)

    @classmethod
    def name(cls) -> str:
        """Return the name of the class."""
        return cls.__name__

    @classmethod
    def describeArgs(cls) -> list[dict[str, Any]]:
        """Return a dictionary for each argument: name, type, description, optional, defaultValue."""
        return [_described(parameter) for parameter in _parameters_of(cls)]

    @classmethod
    def describeReturn(cls) -> dict[str, Any]:
        """Return what a call gives: type, description."""
        annotation = inspect.signature(cls.__call__).return_annotation
        if annotation in (inspect.Signature.empty, Any, "Any"):
            raise NotImplementedError(f"{cls.__name__} describes no return value")
        return {"type": str(annotation), "description": f"What {cls.__name__} makes of its input"}

    @classmethod
    def describeTransform(cls) -> str:
        """Return what the transform does, in a sentence."""
        if cls is GlueTransform or not cls.__doc__:
            raise NotImplementedError(f"{cls.__name__} describes nothing")
        return cls.__doc__.strip().splitlines()[0]

    @classmethod
    def describeErrors(cls) -> list[dict[str, str]]:
        """Return a dictionary for each kind of error that a call may raise: type, description."""
        return [{"type": "TypeError", "description": "An argument has another type than the one described"}]

    @classmethod
    def describe(cls) -> dict[str, Any]:
        """Return all of the above in one dictionary."""
        return {
            "transform": {
                "name": cls.name(),
                "args": cls.describeArgs(),
                "returns": cls.describeReturn(),
                "raises": cls.describeErrors(),
                "location": "internal",
            }
        }


def _parameters_of(cls: type[GlueTransform]) -> list[inspect.Parameter]:
    if cls.__call__ is GlueTransform.__call__:
        raise NotImplementedError(f"{cls.__name__} describes no arguments")
    return list(inspect.signature(cls.__call__).parameters.values())[1:]


def _described(parameter: inspect.Parameter) -> dict[str, Any]:
    is_optional = parameter.default is not parameter.empty or parameter.kind is parameter.VAR_KEYWORD
    default = None if parameter.default in (parameter.empty, None) else str(parameter.default)
    kind, text = _OF_EVERY_TRANSFORM.get(parameter.name, (str(parameter.annotation), parameter.name.replace("_", " ")))
    return {
        "name": parameter.name,
        "type": kind,
        "description": text,
        "optional": is_optional,
        "defaultValue": default,
    }
