"""Properties that are worked out once, without the lock that Python 3.11 takes for each.

Where thousands of small objects have several such properties, the lock takes as long as the work.
Every plan is made in one thread.
"""

from functools import cached_property
from typing import Any, Self, TypeVar, overload

_Value = TypeVar("_Value")


class once(cached_property[_Value]):  # noqa: N801  # it reads as a word above a property
    """As `cached_property`.

    >>> class Square:
    ...     @once
    ...     def area(self) -> list[int]:
    ...         return [4]
    >>> square = Square()
    >>> square.area is square.area
    True
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> _Value: ...
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Self | _Value:
        """What was worked out, from now on in the object itself."""
        if instance is None:
            return self
        assert self.attrname is not None
        found: _Value = self.func(instance)
        instance.__dict__[self.attrname] = found
        return found
