"""The optional compiled kernels: every `_*.c` of the package; without a compiler NumPy serves."""

from pathlib import Path

from setuptools import Extension, setup

SOURCES = sorted(Path("src").glob("tilewright/*/_*.c"))
# Results must not depend on whether a kernel was compiled: no fused multiply-add, no fast math.
FLAGS = ["-O3", "-std=c11", "-ffp-contract=off", "-fno-math-errno"]

setup(
    ext_modules=[
        Extension(
            ".".join(source.with_suffix("").parts[1:]),
            [source.as_posix()],
            depends=sorted(path.as_posix() for path in source.parent.glob("*.h")),
            extra_compile_args=FLAGS,
            optional=True,
        )
        for source in SOURCES
    ]
)
