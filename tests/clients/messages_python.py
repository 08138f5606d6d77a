"""Text, tools, images, JSON schema and thinking through the real `anthropic` client, over every wire.

Environment: BASE_URL (with /v1), API_KEY, MODELS (their ids, joined by commas; each is served on another wire by a
provider that answers as tests/support/scripted.rs says). One line per check and model on stdout; exit 1 when one failed.
"""

import json
import os

import anthropic

import checks

BASE_URL = os.environ["BASE_URL"].removesuffix("/v1")
API_KEY = os.environ["API_KEY"]
MODELS = os.environ["MODELS"].split(",")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = [{"name": "get_weather", "description": "The weather.", "input_schema": SCHEMA}]

client = anthropic.Anthropic(base_url=BASE_URL, api_key=API_KEY, timeout=30, max_retries=0)


def equal(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def ask(model, content, **more):
    messages = content if isinstance(content, list) and "role" in content[0] else [{"role": "user", "content": content}]
    return client.messages.create(model=model, max_tokens=1000, messages=messages, **more)


def text(model):
    whole = ask(model, "one two", system="Be brief.")
    equal([block.text for block in whole.content], ["You said: one two"])
    equal((whole.model, whole.role, whole.stop_reason), (model, "assistant", "end_turn"))
    equal((whole.usage.input_tokens, whole.usage.output_tokens), (9, 5))
    equal(whole.model_extra["weirgate"]["metadata"]["requested_model"], model)


def text_streamed(model):
    with client.messages.stream(model=model, max_tokens=1000, messages=[{"role": "user", "content": "one two"}]) as stream:
        equal("".join(stream.text_stream), "You said: one two")
        message = stream.get_final_message()
    equal((message.stop_reason, message.usage.output_tokens), ("end_turn", 5))


def tools(model):
    messages = [{"role": "user", "content": "The weather?"}]
    first = ask(model, messages, tools=TOOLS)
    equal(first.stop_reason, "tool_use")
    answered(model, messages, first)


def tools_streamed(model):
    messages = [{"role": "user", "content": "The weather?"}]
    with client.messages.stream(model=model, max_tokens=1000, messages=messages, tools=TOOLS) as stream:
        kinds = [event.type for event in stream]
        first = stream.get_final_message()
    assert "input_json" in kinds, kinds
    answered(model, messages, first)


def answered(model, messages, first):
    """Answers the only call of a turn, and sends all of the turn back."""
    (call,) = [block for block in first.content if block.type == "tool_use"]
    equal((call.name, call.input), ("get_weather", {"city": "Paris"}))
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
    messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    second = ask(model, messages, tools=TOOLS)
    equal(second.content[-1].text, "The tool said: sunny")


def tools_run(model):
    """The client's own loop. It asks for a thread of messages first, and does without one where that is refused."""

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """The weather."""
        equal(city, "Paris")
        return "sunny"

    messages = [{"role": "user", "content": "The weather?"}]
    runner = client.beta.messages.tool_runner(model=model, max_tokens=1000, messages=messages, tools=[get_weather])
    equal(runner.until_done().content[-1].text, "The tool said: sunny")


def image(model):
    equal(ask(model, [{"type": "text", "text": "Look"}, IMAGE]).content[0].text, "I see an image")


def schema(model):
    properties = {"city": {"type": "string"}, "degrees": {"type": "integer"}}
    form = {"type": "object", "properties": properties, "required": ["city", "degrees"], "additionalProperties": False}
    answer = ask(model, "a forecast", output_config={"format": {"type": "json_schema", "schema": form}})
    equal(json.loads(answer.content[0].text), {"city": "Paris", "degrees": 20})


def thinking(model):
    budget = {"type": "enabled", "budget_tokens": 1024}
    messages = [{"role": "user", "content": "one"}]
    with client.messages.stream(model=model, max_tokens=8000, messages=messages, thinking=budget) as stream:
        first = stream.get_final_message()
    said = [block.text for block in first.content if block.type == "text"]
    equal(said, ["You said: one"])
    messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": "two"}]
    second = client.messages.create(model=model, max_tokens=8000, messages=messages, thinking=budget)
    equal(second.content[-1].text, "You said: two")


def counted(model):
    count = client.messages.count_tokens(model=model, messages=[{"role": "user", "content": "one two"}])
    assert count.input_tokens > 0, count


def listed(model):
    models = {entry.id: entry for entry in client.models.list(limit=2)}
    assert model in models and models[model].display_name, models


def refused(model):
    try:
        ask("nobody", "one")
    except anthropic.NotFoundError as error:
        equal(error.body["error"]["type"], "not_found_error")
        equal(error.body["request_id"], error.request_id)
    else:
        raise AssertionError("an unknown model answered")
    try:
        ask(model, [{"type": "text"}])
    except anthropic.BadRequestError as error:
        assert "messages.0.content.0.text" in error.body["error"]["message"], error.body
    else:
        raise AssertionError("a text without a text was taken")


CHECKS = [
    text, text_streamed, tools, tools_streamed, tools_run, image, schema, thinking, counted, listed, refused,
]

if __name__ == "__main__":
    checks.main(CHECKS, [(model,) for model in MODELS])
