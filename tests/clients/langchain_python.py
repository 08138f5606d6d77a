"""Text, tools and JSON schema through LangChain's `ChatOpenAI` and the Responses API, over every wire.

Environment: BASE_URL (with /v1), API_KEY, MODELS (their ids, joined by commas; each is served on another wire by a
provider that answers as tests/support/scripted says). One line per check and model on stdout; exit 1 when one failed.
"""

import os

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

import checks

MODELS = os.environ["MODELS"].split(",")


class Forecast(BaseModel):
    """A forecast."""

    city: str
    degrees: int


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


def chat(model):
    return ChatOpenAI(
        model=model,
        base_url=os.environ["BASE_URL"],
        api_key=os.environ["API_KEY"],
        use_responses_api=True,
        max_retries=0,
        timeout=30,
    )


def equal(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def text(model):
    whole = chat(model).invoke("one two")
    equal((whole.text, whole.usage_metadata["total_tokens"]), ("You said: one two", 14))


def text_streamed(model):
    said = "".join(piece.text for piece in chat(model).stream("one two"))
    equal(said, "You said: one two")


def tools(model):
    bound = chat(model).bind_tools([get_weather])
    history = [HumanMessage("The weather?")]
    first = bound.invoke(history)
    (call,) = first.tool_calls
    equal((call["name"], call["args"]), ("get_weather", {"city": "Paris"}))
    history += [first, ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])]
    equal(bound.invoke(history).text, "The tool said: sunny in Paris")


def parsed(model):
    answer = chat(model).with_structured_output(Forecast, method="json_schema").invoke("a forecast")
    equal(answer, Forecast(city="Paris", degrees=20))


CHECKS = [text, text_streamed, tools, parsed]

if __name__ == "__main__":
    checks.main(CHECKS, [(model,) for model in MODELS])
