def make_quickly(
    cls: type[object],
    names: tuple[str, ...],
    defaults: tuple[object, ...],
    is_made: tuple[bool, ...],
    n_positional: int,
    /,
) -> None: ...
