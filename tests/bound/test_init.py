import subprocess
import sys

import jaxaudit.bound


def test_import_does_not_load_jax():
    code = "import sys, jaxaudit.bound; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_public_names_are_sorted_and_exist():
    names = jaxaudit.bound.__all__
    assert names == sorted(names, key=lambda name: (not name[0].isupper(), name))
    assert all(hasattr(jaxaudit.bound, name) for name in names)
