"""`DynamicFrameCollection`: frames by name, as relationalize and the splits return them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.glue.dynamic.base import FrameBase, check_frame

if TYPE_CHECKING:
    from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView


class DynamicFrameCollection:
    """Frames by name.

    Args:
        dynamic_frames: the frames.
        glue_ctx: the `GlueContext` of the script.

    Raises:
        TypeError: a value is no DynamicFrame.
    """

    def __init__(self, dynamic_frames: Mapping[str, Any], glue_ctx: object) -> None:
        for name, frame in dynamic_frames.items():
            check_frame(frame, f"DynamicFrameCollection, {name!r}")
        self._frames, self.glue_ctx = dict(dynamic_frames), glue_ctx

    # Frames are `DynamicFrame`s, a class that is made of those below it, so they are Any here.

    def __getitem__(self, key: str) -> Any:
        return self.select(key)

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __contains__(self, key: object) -> bool:
        return key in self._frames

    def keys(self) -> KeysView[str]:
        """Return the names, in order."""
        return self._frames.keys()

    def values(self) -> ValuesView[Any]:
        """Return the frames, in order."""
        return self._frames.values()

    def items(self) -> ItemsView[str, Any]:
        """Return names and frames, in order."""
        return self._frames.items()

    def select(self, key: str, transformation_ctx: str = "") -> Any:
        """Return the frame of a name.

        Raises:
            KeyError: there is none; the message lists those there are.
        """
        if key not in self._frames:
            raise KeyError(f"no frame {key!r} in this collection; it has {sorted(self._frames)}")
        return self._frames[key]

    def map(self, callable: Callable[..., Any], transformation_ctx: str = "") -> DynamicFrameCollection:
        """Return the collection of what a function makes of each frame.

        Args:
            callable: takes a frame, and the transformation context with the name of the frame.
            transformation_ctx: its name, kept for the function.
        """
        made = {name: callable(frame, f"{transformation_ctx}{name}") for name, frame in self._frames.items()}
        return DynamicFrameCollection(made, self.glue_ctx)

    def flatmap(self, f: Callable[..., Any], transformation_ctx: str = "") -> DynamicFrameCollection:
        """Return the collection of all frames that a function makes of each: it returns a frame or a collection."""
        made: dict[str, Any] = {}
        for name, frame in self._frames.items():
            found = f(frame, f"{transformation_ctx}{name}")
            if isinstance(found, FrameBase):
                made[name] = found
            else:
                made.update({f"{name}_{inner}": each for inner, each in found.items()})
        return DynamicFrameCollection(made, self.glue_ctx)
