"""Text, tools, images, JSON schema, reasoning and errors through the real `openai` client's Responses API, over every wire.

Environment: BASE_URL (with /v1), API_KEY, MODELS (their ids, joined by commas; each is served on another wire by a
provider that answers as tests/support/scripted says), STORES (set: it keeps responses). One line per check and model on stdout; exit 1 when one failed.
"""

import os
import time

import openai
from pydantic import BaseModel

import checks

MODELS = os.environ["MODELS"].split(",")
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "name": "get_weather", "description": "The weather.", "parameters": SCHEMA, "strict": True}]

client = openai.OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"], timeout=30, max_retries=0)


class Forecast(BaseModel):
    city: str
    degrees: int


def equal(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def text(model):
    whole = client.responses.create(model=model, input="one two", instructions="Be brief.")
    equal(whole.output_text, "You said: one two")
    equal((whole.model, whole.status, whole.object), (model, "completed", "response"))
    # A provider that speaks the same words may leave it out.
    assert not whole.to_dict().get("store"), whole
    equal((whole.usage.input_tokens, whole.usage.output_tokens, whole.usage.total_tokens), (9, 5, 14))
    equal(whole.model_extra["weirgate"]["metadata"]["requested_model"], model)


def text_streamed(model):
    with client.responses.stream(model=model, input="one two") as stream:
        said = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    equal("".join(said), "You said: one two")
    equal((final.output_text, final.status, final.usage.output_tokens), ("You said: one two", "completed", 5))


def events(model):
    stream = client.responses.create(model=model, input="one two", stream=True)
    all_events = list(stream)
    equal([event.sequence_number for event in all_events], list(range(len(all_events))))
    equal([all_events[0].type, all_events[-1].type], ["response.created", "response.completed"])


def tools(model):
    history = [{"role": "user", "content": "The weather?"}]
    answered(model, history, client.responses.create(model=model, input=history, tools=TOOLS))


def tools_streamed(model):
    history = [{"role": "user", "content": "The weather?"}]
    with client.responses.stream(model=model, input=history, tools=TOOLS) as stream:
        kinds = [event.type for event in stream]
        first = stream.get_final_response()
    assert "response.function_call_arguments.done" in kinds, kinds
    answered(model, history, first)


def answered(model, history, first):
    """Answers the only call of a turn, and sends all of the turn back."""
    (call,) = [item for item in first.output if item.type == "function_call"]
    equal((call.name, call.arguments.replace(" ", "")), ("get_weather", '{"city":"Paris"}'))
    history += first.output
    history.append({"type": "function_call_output", "call_id": call.call_id, "output": "sunny"})
    second = client.responses.create(model=model, input=history, tools=TOOLS)
    equal(second.output_text, "The tool said: sunny")


def image(model):
    content = [{"type": "input_text", "text": "Look"}, {"type": "input_image", "image_url": PIXEL, "detail": "auto"}]
    answer = client.responses.create(model=model, input=[{"role": "user", "content": content}])
    equal(answer.output_text, "I see an image")


def parsed(model):
    answer = client.responses.parse(model=model, input="a forecast", text_format=Forecast)
    equal(answer.output_parsed, Forecast(city="Paris", degrees=20))


def reasoning(model):
    more = {"reasoning": {"effort": "low", "summary": "auto"}, "include": ["reasoning.encrypted_content"], "store": False}
    first = client.responses.create(model=model, input="one", **more)
    (said,) = [item for item in first.output if item.type == "reasoning"]
    assert said.summary[0].text == "hm" and said.encrypted_content, said
    history = [{"role": "user", "content": "one"}, *first.output, {"role": "user", "content": "two"}]
    equal(client.responses.create(model=model, input=history, **more).output_text, "You said: two")


def refused(model):
    try:
        client.responses.create(model="nobody", input="one")
    except openai.NotFoundError as error:
        equal(error.code, "model_not_found")
    else:
        raise AssertionError("an unknown model answered")
    for more, param in [({"previous_response_id": "resp_1"}, "previous_response_id"), ({"store": True}, "store")]:
        try:
            client.responses.create(model=model, input="one", **more)
        except openai.BadRequestError as error:
            equal(error.param, param)
            assert "[responses] store" in error.message, error.message
        else:
            raise AssertionError(f"{param} was taken")


def stored(model):
    first = client.responses.create(model=model, input="one two", store=True)
    equal(first.store, True)
    equal(client.responses.retrieve(first.id).to_dict(), first.to_dict())
    with client.responses.stream(model=model, input="three", previous_response_id=first.id, store=True) as stream:
        second = stream.get_final_response()
    equal((second.output_text, second.previous_response_id), ("You said: three", first.id))
    items = list(client.responses.input_items.list(second.id, order="asc", limit=1))
    equal([item.type for item in items], ["message", "message", "message"])
    equal(items[1].content[0].text, "You said: one two")
    client.responses.delete(first.id)
    for ask in [client.responses.retrieve, client.responses.delete]:
        try:
            ask(first.id)
        except openai.NotFoundError as error:
            equal(error.code, "response_not_found")
        else:
            raise AssertionError("a deleted response is there")
    third = client.responses.create(model=model, input="four", previous_response_id=second.id)
    equal((third.output_text, third.store), ("You said: four", False))
    try:
        client.responses.create(model=model, input="five", previous_response_id=first.id)
    except openai.BadRequestError as error:
        equal((error.code, error.param), ("previous_response_not_found", "previous_response_id"))
    else:
        raise AssertionError("a deleted response was gone on with")


def stored_tools(model):
    first = client.responses.create(model=model, input="The weather?", tools=TOOLS, store=True)
    (call,) = [item for item in first.output if item.type == "function_call"]
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    second = client.responses.create(model=model, input=[result], tools=TOOLS, previous_response_id=first.id)
    equal(second.output_text, "The tool said: sunny")


def background(model):
    response = client.responses.create(model=model, input="one two", background=True)
    equal((response.status, response.background), ("queued", True))
    for _ in range(200):
        if response.status not in ("queued", "in_progress"):
            break
        time.sleep(0.1)
        response = client.responses.retrieve(response.id)
    equal((response.status, response.output_text), ("completed", "You said: one two"))
    try:
        client.responses.cancel(response.id)
    except openai.BadRequestError as error:
        equal(error.code, "response_not_cancellable")
    else:
        raise AssertionError("a response that has ended was cancelled")


CHECKS = [text, text_streamed, events, tools, tools_streamed, image, parsed, reasoning]
# Of a gateway that keeps responses, and of one that keeps none.
CHECKS += [stored, stored_tools, background] if os.environ.get("STORES") else [refused]

if __name__ == "__main__":
    checks.main(CHECKS, [(model,) for model in MODELS])
