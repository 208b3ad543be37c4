"""How Sphinx makes the site of what `stage.py` has laid out."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "clients/python/src"))

project = "gloveport"
html_title = "gloveport"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]

# The documents are plain Markdown, as it is read in the repository: nothing in them is syntax of MyST. What stage.py adds to
# a page, its table of contents, is the only directive.
myst_disable_syntax = ["myst_role", "myst_target", "myst_line_comment", "myst_block_break", "footnote_ref"]
myst_enable_extensions = ["strikethrough"]
myst_heading_anchors = 6
# Examples leave things out with `…`, which no language has.
suppress_warnings = ["misc.highlighting_failure"]

# Docstrings have `code` as Markdown has it.
default_role = "literal"
autoclass_content = "both"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autosummary_generate = False
add_module_names = False
maximum_signature_line_length = 88
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_theme_options = {"navigation_with_keys": False}
html_static_path = ["static"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_last_updated_fmt = None
# It reads the pages that it finds, which a browser does not allow to pages that are files.
html_show_search_summary = False


def public(app, env, node, contnode):
    """A class by the name that it is imported by, where a signature has that of the module that it is defined in."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target.startswith("gloveport._"):
        return None
    name = "gloveport." + target.rsplit(".", 1)[-1]
    return env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, node["reftype"], name, node, contnode)


def setup(app):
    app.connect("missing-reference", public)
