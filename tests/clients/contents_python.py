"""Text, tools, images, JSON schema, thoughts, counts, vectors and errors through the real `google-genai` client, over every wire.

Environment: BASE_URL (with /v1), API_KEY, MODELS (their ids, joined by commas; each is served on another wire by a
provider that answers as tests/support/scripted says). One line per check and model on stdout; exit 1 when one failed.
"""

import base64
import os

from google import genai
from google.genai import errors, types
from pydantic import BaseModel

import checks

MODELS = os.environ["MODELS"].split(",")
PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg==")
BASE = os.environ["BASE_URL"].removesuffix("/v1")
CITY = types.Schema(type="OBJECT", properties={"city": types.Schema(type="STRING")}, required=["city"])
WEATHER = types.FunctionDeclaration(name="get_weather", description="The weather.", parameters=CITY)
TOOLS = [types.Tool(function_declarations=[WEATHER])]

client = genai.Client(api_key=os.environ["API_KEY"], http_options=types.HttpOptions(base_url=BASE, timeout=30_000))


class Forecast(BaseModel):
    city: str
    degrees: int


def equal(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def config(**members):
    off = types.AutomaticFunctionCallingConfig(disable=True)
    return types.GenerateContentConfig(automatic_function_calling=off, **members)


def user(text):
    return types.Content(role="user", parts=[types.Part(text=text)])


def text(model):
    answer = client.models.generate_content(model=model, contents="one two", config=config(system_instruction="Be brief."))
    equal(answer.text, "You said: one two")
    equal((answer.model_version, answer.candidates[0].finish_reason.value), (model, "STOP"))
    usage = answer.usage_metadata
    equal((usage.prompt_token_count, usage.candidates_token_count, usage.total_token_count), (9, 5, 14))


def text_streamed(model):
    chunks = list(client.models.generate_content_stream(model=model, contents="one two"))
    equal("".join(chunk.text or "" for chunk in chunks), "You said: one two")
    equal(chunks[-1].candidates[0].finish_reason.value, "STOP")
    equal(chunks[-1].usage_metadata.candidates_token_count, 5)


def tools(model):
    first = client.models.generate_content(model=model, contents="The weather?", config=config(tools=TOOLS))
    answered(model, first.candidates[0].content)


def tools_streamed(model):
    chunks = client.models.generate_content_stream(model=model, contents="The weather?", config=config(tools=TOOLS))
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or []]
    answered(model, types.Content(role="model", parts=[part for part in parts if part.text != ""]))


def answered(model, said):
    """Answers the only call of a turn, and sends all of the turn back."""
    (call,) = [part.function_call for part in said.parts if part.function_call]
    equal((call.name, call.args), ("get_weather", {"city": "Paris"}))
    result = types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": "sunny"}))
    history = [user("The weather?"), said, types.Content(role="user", parts=[result])]
    second = client.models.generate_content(model=model, contents=history, config=config(tools=TOOLS))
    equal(second.text, "The tool said: sunny")


def called_by_itself(model):
    def get_weather(city: str) -> str:
        """The weather of a city."""
        return f"sunny in {city}"

    answer = client.models.generate_content(
        model=model, contents="The weather?", config=types.GenerateContentConfig(tools=[get_weather])
    )
    equal(answer.text, "The tool said: sunny in Paris")


def image(model):
    look = ["Look", types.Part.from_bytes(data=PIXEL, mime_type="image/png")]
    equal(client.models.generate_content(model=model, contents=look).text, "I see an image")


def parsed(model):
    form = config(response_mime_type="application/json", response_schema=Forecast)
    answer = client.models.generate_content(model=model, contents="a forecast", config=form)
    equal(answer.parsed, Forecast(city="Paris", degrees=20))


def thoughts(model):
    thinking = config(thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_level="LOW"))
    first = client.models.generate_content(model=model, contents="one", config=thinking)
    said = first.candidates[0].content
    assert any(part.thought and part.text == "hm" for part in said.parts), said
    equal(first.text, "You said: one")
    second = client.models.generate_content(model=model, contents=[user("one"), said, user("two")], config=thinking)
    equal(second.text, "You said: two")


def chat(model):
    session = client.chats.create(model=model)
    equal(session.send_message("one").text, "You said: one")
    equal("".join(chunk.text or "" for chunk in session.send_message_stream("two")), "You said: two")


def counted(model):
    assert client.models.count_tokens(model=model, contents="one two").total_tokens > 0


def listed(model):
    names = [entry.name for entry in client.models.list()]
    assert f"models/{model}" in names, names
    equal(client.models.get(model=model).name, f"models/{model}")


def refused(model):
    try:
        client.models.generate_content(model="nobody", contents="one")
    except errors.ClientError as error:
        equal((error.code, error.status), (404, "NOT_FOUND"))
    else:
        raise AssertionError("an unknown model answered")
    other = genai.Client(api_key="wrong", http_options=types.HttpOptions(base_url=BASE))
    try:
        other.models.generate_content(model=model, contents="one")
    except errors.ClientError as error:
        equal((error.code, error.status), (401, "UNAUTHENTICATED"))
    else:
        raise AssertionError("a wrong key was taken")


CHECKS = [
    text,
    text_streamed,
    tools,
    tools_streamed,
    called_by_itself,
    image,
    parsed,
    thoughts,
    chat,
    counted,
    listed,
    refused,
]

if __name__ == "__main__":
    checks.main(CHECKS, [(model,) for model in MODELS])
