import gc
import os
import re
import sys
import tempfile
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

from dynascope import __version__

# The pages run the package's own commands, from the environment that builds them.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Modules and documents stay to the end; to look for garbage among them takes a fifth of the time, here and in cells.
gc.set_threshold(50_000, 20, 20)
profile = tempfile.TemporaryDirectory()
os.environ["IPYTHONDIR"] = profile.name
startup = Path(profile.name, "profile_default", "startup")
startup.mkdir(parents=True)
(startup / "garbage.py").write_text("import gc\n\ngc.set_threshold(50_000, 20, 20)\n")
# Cells run in temporary folders, and find the tables beside the pages by this.
os.environ["DOCUMENTATION"] = str(Path(__file__).parent)
sys.path.insert(0, str(Path(__file__).parent))

project = "dynascope"
author = "The dynascope developers"
copyright = f"2026, {author}"
release = version = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
extensions += ["argument_bounds", "formulas_by_paper", "public_names", "signature_types", "study_pages"]
exclude_patterns = ["_build", "images/*.py"]
if tags.has("plain"):  # noqa: F821 - Sphinx defines them
    # To see whether all is well: contents of all pages in each, and the sources in colours, take longer than the pages.
    html_theme = "basic"
else:
    html_theme = "furo"
    extensions += ["sphinx.ext.viewcode"]
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_title = f"dynascope {release}"

myst_heading_anchors = 3
myst_fence_as_directive = ["math"]  # ```math, which code hosts typeset too
html_math_renderer = "mathml"  # needs no script from the network
nb_execution_mode = "auto"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300

# In docstrings a single backtick is code. Types are left to the text, which gives shapes and units with them.
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = False
# Pages are built without them.
autodoc_mock_imports = ["torch", "array_api_compat", "curvlinops", "lightning", "transformers"]
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_attr_annotations = False


def escape_mathematics(app, what, name, obj, options, lines):
    """To reStructuredText |β| is a substitution and a line that begins with "S." an item of a list."""
    for i, line in enumerate(lines):
        if ">>>" not in line:
            lines[i] = re.sub(r": ([A-Za-z])\.$", r": \1\\.", line.replace("|", r"\|"))


def skip_aliases(app, what, name, obj, skip, options):
    """The fields of a named tuple are described by its docstring."""
    return skip or (getattr(obj, "__doc__", None) or "").startswith("Alias for field number")


def typeset(display):
    """A renderer of formulas as MathML."""

    def visit(translator, node):
        translator.body.append(convert(node.astext(), display=display))
        raise nodes.SkipNode

    return visit, None


def setup(app):
    app.add_html_math_renderer("mathml", typeset("inline"), typeset("block"))
    app.connect("autodoc-process-docstring", escape_mathematics, priority=0)
    app.connect("autodoc-skip-member", skip_aliases)
