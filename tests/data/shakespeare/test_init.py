from jaxaudit.data import shakespeare


def test_all_names_are_there():
    assert all(hasattr(shakespeare, name) for name in shakespeare.__all__)
