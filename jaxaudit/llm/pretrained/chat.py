"""How a chat model wants to be asked: its own template, rendered once, with a mark where the question goes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxaudit.errors import InputError

_QUESTION, _ANSWER = "{question}", "{answer}"


class Chat(NamedTuple):
    """One question and its answer, as text around the two."""

    prompt: str
    """What comes before the answer, with ``{question}``; the template of `jaxaudit.llm.tokenize`."""
    tail: str
    """What comes after it."""


def render_chat(
    template: str, messages: Sequence[dict[str, str]], *, ask: bool, bos: str | None, eos: str | None
) -> str:
    """Text of a conversation.

    Templates are programs of whoever published the model: they run in Jinja's sandbox, which keeps them from the
    interpreter, and without a clock, so that a prompt is the same every day.

    Parameters
    ----------
    template
        In Jinja, as in ``tokenizer_config.json``.
    messages
        Each with ``role`` (``system``, ``user``, ``assistant``) and ``content``.
    ask
        Whether the model shall speak next (``add_generation_prompt``).
    bos, eos
        Texts of the special tokens, which templates may use.

    Raises
    ------
    InputError
        A template that cannot be rendered, or ``jinja2`` is not installed.

    Examples
    --------
    >>> template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}"
    >>> render_chat(template, [{"role": "user", "content": "Who?"}], ask=False, bos=None, eos="</s>")
    '<user>Who?</s>'
    """
    jinja2, sandbox = _packages()

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    environment = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = refuse
    values = {
        "messages": list(messages),
        "add_generation_prompt": ask,
        "bos_token": bos or "",
        "eos_token": eos or "",
    }
    try:
        return str(environment.from_string(template).render(tools=None, documents=None, **values))
    except Exception as error:  # a template may fail in any way that Python can
        raise InputError(f"the model's chat template cannot be rendered: {error}") from error


def chat_format(template: str, *, bos: str | None, eos: str | None, system: str | None = None) -> Chat:
    """The text around one question and one answer.

    The boundary is where the model is asked to speak, if a whole conversation agrees up to spaces, which the model
    then writes itself (as Llama 2 does); otherwise, where the answer begins in a whole conversation.

    Parameters
    ----------
    template, bos, eos
        See `render_chat`.
    system
        A message before the question; ``None``: what the template puts there, if anything.

    Raises
    ------
    InputError
        As `render_chat`, or a template that changes or repeats question or answer.

    Examples
    --------
    >>> template = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\\n{% endfor %}"
    >>> chat_format(template, bos=None, eos=None)
    Chat(prompt='[user] {question}\\n[assistant] ', tail='\\n')
    """
    asked = [] if system is None else [{"role": "system", "content": system}]
    asked = [*asked, {"role": "user", "content": _QUESTION}]
    answered = [*asked, {"role": "assistant", "content": _ANSWER}]
    prompt = render_chat(template, asked, ask=True, bos=bos, eos=eos)
    whole = render_chat(template, answered, ask=False, bos=bos, eos=eos)
    for text, marks in ((prompt, (_QUESTION,)), (whole, (_QUESTION, _ANSWER))):
        if any(text.count(mark) != 1 for mark in marks):
            raise InputError(f"the model's chat template must show question and answer once, got {text!r}")
    before, tail = whole.split(_ANSWER)
    same = before.startswith(prompt) and not before[len(prompt) :].strip()
    return Chat(prompt if same else before, tail)


def _packages() -> tuple[Any, Any]:
    try:
        import jinja2
        import jinja2.sandbox
    except ImportError as error:
        raise InputError("chat templates need the package jinja2: pip install 'jaxaudit[llm]'") from error
    return jinja2, jinja2.sandbox
