"""The one exception that means "the input is wrong", so that it is never mistaken for a fault of the software."""


class InputError(ValueError):
    """Bad input: the message names the argument and its value. The CLI turns it into exit code 2.

    Examples
    --------
    >>> raise InputError("num_guesses must be even, got 3")
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: num_guesses must be even, got 3
    """
