import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm.pretrained.chat import chat_format, render_chat

pytest.importorskip("jinja2")

# Templates of this kind are what published models carry; the texts they must give are in the models' documentation.
LLAMA_2 = (
    "{% for m in messages %}{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + m['content'].strip() + ' [/INST]' }}"
    "{% elif m['role'] == 'assistant' %}{{ ' ' + m['content'].strip() + ' ' + eos_token }}"
    "{% else %}{{ raise_exception('no system messages here') }}{% endif %}{% endfor %}"
)
LLAMA_3 = (
    "{% for m in messages %}{% set text = '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n' + m['content'] "
    "| trim + '<|eot_id|>' %}{% if loop.first %}{% set text = bos_token + text %}{% endif %}{{ text }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% for m in messages %}{% set role = 'model' if m['role'] == 'assistant' else m['role'] %}"
    "{{ '<start_of_turn>' + role + '\n' + m['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
THINKING = (
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}<think></think>{% endif %}{{ m.content }}"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.mark.parametrize(
    ("template", "bos", "eos", "prompt", "tail"),
    [
        (LLAMA_2, "<s>", "</s>", "<s>[INST] {question} [/INST]", " </s>"),
        (
            LLAMA_3,
            "<|begin_of_text|>",
            "<|end_of_text|>",
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n{question}<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
            "<|eot_id|>",
        ),
        (
            GEMMA,
            "<bos>",
            "<eos>",
            "<bos><start_of_turn>user\n{question}<end_of_turn>\n<start_of_turn>model\n",
            "<end_of_turn>\n",
        ),
        # What a whole conversation puts before an answer belongs to the prompt, unless it is only spaces.
        (THINKING, None, None, "<user>{question}<assistant><think></think>", ""),
    ],
)
def test_boundary_of_question_and_answer(template, bos, eos, prompt, tail):
    assert tuple(chat_format(template, bos=bos, eos=eos)) == (prompt, tail)


def test_system_message():
    chat = chat_format(LLAMA_3, bos="<B>", eos="<E>", system="Be brief.")
    assert chat.prompt.startswith("<B><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>")
    assert chat.prompt.count("<B>") == 1
    with pytest.raises(InputError, match="cannot be rendered: no system messages here"):
        chat_format(LLAMA_2, bos="<s>", eos="</s>", system="Be brief.")


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{{ messages.append(1) }}",
        "{% for %}",
        "{{ strftime_now('%Y') }}",
    ],
)
def test_templates_reach_nothing(template):
    with pytest.raises(InputError, match="chat template cannot be rendered"):
        render_chat(template, [], ask=True, bos=None, eos=None)


@pytest.mark.parametrize(
    "template", ["{{ messages[0].content }}", "no question", "{{ messages[0].content | upper }}"]
)
def test_templates_that_lose_question_or_answer(template):
    with pytest.raises(InputError, match="must show question and answer once"):
        chat_format(template, bos=None, eos=None)


def test_agrees_with_transformers():
    utilities = pytest.importorskip("transformers.utils.chat_template_utils")
    messages = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Me."}]
    for template in (LLAMA_2, LLAMA_3, GEMMA, THINKING):
        for ask in (False, True):
            whole, _ = utilities.render_jinja_template(
                [messages],
                chat_template=template,
                add_generation_prompt=ask,
                bos_token="<s>",
                eos_token="</s>",
            )
            assert render_chat(template, messages, ask=ask, bos="<s>", eos="</s>") == whole[0]
