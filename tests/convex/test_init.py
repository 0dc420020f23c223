"""The public names of the package."""

import subprocess
import sys

import jaxaudit.convex


def test_every_public_name_is_there():
    assert all(getattr(jaxaudit.convex, name) is not None for name in jaxaudit.convex.__all__)


def test_jax_is_not_loaded():
    code = "import sys, jaxaudit.convex; sys.exit('jax' in sys.modules or 'jaxlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
