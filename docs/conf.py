"""Sphinx configuration: ``make docs``. Nothing here needs the network."""

from __future__ import annotations

import os
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
os.environ.setdefault("MPLBACKEND", "agg")

from command_line import write_command_line  # noqa: E402
from figures import add_short_anchors, describe_thumbnails, figure_of_the_block  # noqa: E402

from stiefelsync import __version__  # noqa: E402

project = "stiefelsync"
author = "The stiefelsync developers"
project_copyright = "The stiefelsync developers"
version = release = __version__

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
    "results",
    "**/sg_execution_times.rst",
    "sg_execution_times.rst",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "attrs_inline", "substitution"]
myst_substitutions = {"version": f"{{bdg-primary}}`version {version}`"}
myst_heading_anchors = 3
autosummary_generate = True
templates_path = ["_templates"]
autodoc_typehints = "none"
# Pages of modules whose extras are not installed show what their docstrings say.
autodoc_mock_imports = [name for name in ("dask", "distributed", "pyarrow", "torch") if find_spec(name) is None]
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
suppress_warnings = ["config.cache"]

html_math_renderer = "mathml"

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 5,
    "remove_config_comments": True,
    "image_scrapers": ("matplotlib", figure_of_the_block),
    "plot_gallery": os.environ.get("GALLERY", "True"),
}
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")

# Commands are typed as they stand there: two hyphens are not a dash.
smartquotes = False

html_theme = "pydata_sphinx_theme"
html_title = f"stiefelsync {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {page: [] for page in ("index", "start", "architecture", "changes", "migrating", "search", "genindex")}
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "use_edit_page_button": False,
}


def setup(app: Any) -> None:
    """Write the pages that are made from the program itself, and see to the texts of pictures."""
    app.connect("doctree-read", describe_thumbnails)
    app.connect("doctree-read", add_short_anchors)
    write_command_line(HERE / "reference" / "command-line.md")
