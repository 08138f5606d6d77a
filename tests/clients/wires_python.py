"""Text, tools, images, JSON schema and reasoning through the real `openai` client and LangChain's chat model.

Environment: BASE_URL (with /v1), API_KEY, MODELS (their ids, joined by commas; each is served on another wire by a
provider that answers as tests/support/scripted.rs says). One line per check and model on stdout; exit 1 when one failed.
"""

import json
import os

import openai
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

import checks

BASE_URL = os.environ["BASE_URL"]
API_KEY = os.environ["API_KEY"]
MODELS = os.environ["MODELS"].split(",")
IMAGE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
LOOK = [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": IMAGE}}]
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": PARAMETERS}}]

client = openai.OpenAI(base_url=BASE_URL, api_key=API_KEY, timeout=30, max_retries=0)


class Forecast(BaseModel):
    city: str
    degrees: int


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return "sunny in " + city


def equal(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def langchain(model, **options):
    return ChatOpenAI(base_url=BASE_URL, api_key=API_KEY, model=model, max_retries=0, timeout=30, **options)


def openai_text(model):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "one two"}]
    whole = client.chat.completions.create(model=model, messages=messages)
    equal(whole.choices[0].message.content, "You said: one two")
    equal((whole.usage.prompt_tokens, whole.usage.completion_tokens), (9, 5))
    chunks = client.chat.completions.create(model=model, messages=messages, stream=True)
    pieces = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    equal("".join(pieces), "You said: one two")


def openai_completions(model):
    whole = client.completions.create(model=model, prompt="one two", max_tokens=64)
    equal((whole.choices[0].text, whole.choices[0].finish_reason), ("You said: one two", "stop"))
    chunks = client.completions.create(model=model, prompt="one two", max_tokens=64, stream=True)
    equal("".join(chunk.choices[0].text for chunk in chunks), "You said: one two")


def openai_tools(model):
    messages = [{"role": "user", "content": "The weather?"}]
    first = client.chat.completions.create(model=model, messages=messages, tools=TOOLS)
    choice = first.choices[0]
    equal(choice.finish_reason, "tool_calls")
    (call,) = choice.message.tool_calls
    equal((call.function.name, json.loads(call.function.arguments)), ("get_weather", {"city": "Paris"}))
    messages += [choice.message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    second = client.chat.completions.create(model=model, messages=messages, tools=TOOLS)
    equal(second.choices[0].message.content, "The tool said: sunny")


def openai_tools_streamed(model):
    messages = [{"role": "user", "content": "The weather?"}]
    with client.chat.completions.stream(model=model, messages=messages, tools=TOOLS) as events:
        for _ in events:
            pass
        message = events.get_final_completion().choices[0].message
    (call,) = message.tool_calls
    equal(json.loads(call.function.arguments), {"city": "Paris"})
    messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    answer = client.chat.completions.create(model=model, messages=messages, tools=TOOLS)
    equal(answer.choices[0].message.content, "The tool said: sunny")


def openai_image(model):
    answer = client.chat.completions.create(model=model, messages=[{"role": "user", "content": LOOK}])
    equal(answer.choices[0].message.content, "I see an image")


def openai_schema(model):
    messages = [{"role": "user", "content": "a forecast"}]
    answer = client.chat.completions.parse(model=model, messages=messages, response_format=Forecast)
    equal(answer.choices[0].message.parsed, Forecast(city="Paris", degrees=20))


def openai_reasoning(model):
    messages = [{"role": "user", "content": "one"}]
    first = client.chat.completions.create(model=model, messages=messages, reasoning_effort="high")
    message = first.choices[0].message
    equal((message.reasoning, message.content), ("hm", "You said: one"))
    messages += [message, {"role": "user", "content": "two"}]
    second = client.chat.completions.create(model=model, messages=messages, reasoning_effort="high")
    equal(second.choices[0].message.content, "You said: two")


def langchain_text(model):
    chat = langchain(model)
    answer = chat.invoke("one two")
    equal(answer.content, "You said: one two")
    equal(answer.usage_metadata["total_tokens"], 14)
    equal("".join(piece.text for piece in chat.stream("one two")), "You said: one two")


def langchain_tools(model):
    chat = langchain(model).bind_tools([get_weather])
    messages = [HumanMessage("The weather?")]
    for turn in (chat.invoke, streamed(chat)):
        first = turn(messages)
        (call,) = first.tool_calls
        equal((call["name"], call["args"]), ("get_weather", {"city": "Paris"}))
        result = ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])
        equal(turn([*messages, first, result]).content, "The tool said: sunny in Paris")


def streamed(chat):
    def turn(messages):
        pieces = list(chat.stream(messages))
        whole = pieces[0]
        for piece in pieces[1:]:
            whole += piece
        return whole

    return turn


def langchain_image(model):
    equal(langchain(model).invoke([HumanMessage(LOOK)]).content, "I see an image")


def langchain_schema(model):
    chat = langchain(model).with_structured_output(Forecast, method="json_schema")
    equal(chat.invoke("a forecast"), Forecast(city="Paris", degrees=20))


def langchain_reasoning(model):
    answer = langchain(model, reasoning_effort="high").invoke("one")
    equal(answer.content, "You said: one")


CHECKS = [
    openai_text, openai_completions, openai_tools, openai_tools_streamed, openai_image, openai_schema, openai_reasoning,
    langchain_text, langchain_tools, langchain_image, langchain_schema, langchain_reasoning,
]

if __name__ == "__main__":
    checks.main(CHECKS, [(model,) for model in MODELS])
