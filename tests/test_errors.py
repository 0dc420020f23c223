import pytest

from jaxaudit.errors import InputError


def test_bad_input_is_a_value_error():
    with pytest.raises(ValueError, match="num_guesses"):
        raise InputError("num_guesses must be even, got 3")
