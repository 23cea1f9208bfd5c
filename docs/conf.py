"""How Sphinx builds the documentation."""

from importlib.metadata import version as installed_version

project = "Tilewright"
author = "the Tilewright authors"
copyright = "the Tilewright authors"  # noqa: A001  # Sphinx wants this name
release = version = installed_version("tilewright")

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
nitpicky = True

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3

html_theme = "alabaster"
# Of the styles that come with Pygments, this one prints the output of commands dark enough to read.
pygments_style = "sphinx"
html_theme_options = {
    "code_font_size": "0.75em",
    "description": "Plans how neural networks run on NPUs",
    "fixed_sidebar": True,
    "page_width": "1240px",
}
