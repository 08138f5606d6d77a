"""Acceptance of the gateway by the real `openai` Python client.

Environment: BASE_URL (with /v1), API_KEY, MODEL (answers as the model sandbox does), CUT_MODEL (breaks off
in mid-stream), FLAKY_MODEL (its first call fails with 503, the next succeeds), BASE_MODEL (completes any text by
" on a time"), EMBEDDING_MODEL (answers two
inputs with (0.5, 0) and (0.5, 1), as numbers whatever is asked for), IMAGE_MODEL (draws as the model
sandbox does), SPEECH_MODEL (speaks). Arguments: the checks to
run; without any, all. One line per check on stdout; exit 1 when one failed, 2 for an unknown name.
"""

import base64
import json
import os

import openai
from pydantic import BaseModel

import checks

MODEL = os.environ.get("MODEL", "sandbox-chat")
CUT_MODEL = os.environ.get("CUT_MODEL", "sandbox/sandbox-cut")
FLAKY_MODEL = os.environ.get("FLAKY_MODEL", "flaky")
BASE_MODEL = os.environ.get("BASE_MODEL", "base")
IMAGE_MODEL = os.environ.get("IMAGE_MODEL", "sandbox-image")
EMBEDDING_MODEL = os.environ.get("EMBEDDING_MODEL", "vectors")
SPEECH_MODEL = os.environ.get("SPEECH_MODEL", "sandbox-speech")
TRANSCRIPTION_MODEL = os.environ.get("TRANSCRIPTION_MODEL", "sandbox-transcription")


def client(**options):
    options.setdefault("api_key", os.environ.get("API_KEY", "none"))
    return openai.OpenAI(base_url=os.environ["BASE_URL"], timeout=30, **options)


def user(text):
    return [{"role": "user", "content": text}]


def tool(name):
    parameters = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS = [tool("get_weather"), tool("get_time")]


def equal(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def plain():
    answer = client().chat.completions.create(model=MODEL, messages=user("one two"))
    choice = answer.choices[0]
    equal(answer.object, "chat.completion")
    equal((choice.message.role, choice.message.content), ("assistant", "You said: one two"))
    equal(choice.finish_reason, "stop")
    usage = answer.usage
    assert usage.prompt_tokens > 0 and usage.completion_tokens > 0, usage
    equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)


def completion():
    answer = client().completions.create(model=MODEL, prompt="one two", max_tokens=64)
    (choice,) = answer.choices
    equal((answer.object, choice.text, choice.finish_reason), ("text_completion", "You said: one two", "stop"))
    equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)


def completion_streamed():
    options = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(client().completions.create(model=MODEL, prompt="one two", **options))
    said = [choice for chunk in chunks for choice in chunk.choices]
    equal("".join(choice.text for choice in said), "You said: one two")
    equal([choice.finish_reason for choice in said][-1], "stop")
    assert chunks[-1].usage.total_tokens > 0 and not chunks[-1].choices, chunks[-1]


def completion_of_a_base_model():
    options = {"suffix": "The end.", "logprobs": 1, "echo": False, "best_of": 2, "max_tokens": 8}
    answer = client().completions.create(model=BASE_MODEL, prompt=["Once"], **options)
    (choice,) = answer.choices
    equal((choice.text, choice.finish_reason), (" on a time", "length"))
    equal((choice.logprobs.tokens, choice.logprobs.token_logprobs), ([" on"], [-0.25]))
    chunks = list(client().completions.create(model=BASE_MODEL, prompt=[1, 2], stream=True))
    equal("".join(chunk.choices[0].text for chunk in chunks), " on a time")


def completion_that_no_model_can_make():
    error = raises(openai.BadRequestError, lambda: client().completions.create(model=MODEL, prompt="a", suffix="b"))
    equal(error.param, "suffix")


def choices():
    answer = client().chat.completions.create(model=MODEL, messages=user("a"), n=2)
    equal([choice.index for choice in answer.choices], [0, 1])


def length():
    answer = client().chat.completions.create(model=MODEL, messages=user("a b c"), max_completion_tokens=2)
    equal(answer.choices[0].finish_reason, "length")


def stream():
    chunks = list(client().chat.completions.create(model=MODEL, messages=user("one two"), stream=True))
    assert all(chunk.object == "chat.completion.chunk" for chunk in chunks), chunks
    equal(len({chunk.id for chunk in chunks}), 1)
    deltas = [chunk.choices[0] for chunk in chunks if chunk.choices]
    equal(deltas[0].delta.role, "assistant")
    equal("".join(choice.delta.content or "" for choice in deltas), "You said: one two")
    equal([choice.finish_reason for choice in deltas if choice.finish_reason], ["stop"])


def stream_usage():
    options = {"include_usage": True}
    chunks = list(
        client().chat.completions.create(
            model=MODEL, messages=user("one two"), stream=True, stream_options=options
        )
    )
    with_usage = [chunk.usage for chunk in chunks if chunk.usage]
    equal(len(with_usage), 1)
    whole = client().chat.completions.create(model=MODEL, messages=user("one two"))
    equal(with_usage[0].total_tokens, whole.usage.total_tokens)


def tools_parallel():
    answer = client().chat.completions.create(
        model=MODEL, messages=user("get_weather and get_time of Paris"), tools=TOOLS
    )
    choice = answer.choices[0]
    equal(choice.finish_reason, "tool_calls")
    calls = choice.message.tool_calls
    equal([call.function.name for call in calls], ["get_weather", "get_time"])
    equal(len({call.id for call in calls}), 2)
    for call in calls:
        equal(sorted(json.loads(call.function.arguments)), ["city"])


def tools_forced():
    forced = {"type": "function", "function": {"name": "get_time"}}
    answer = client().chat.completions.create(
        model=MODEL, messages=user("hello"), tools=TOOLS, tool_choice=forced
    )
    equal([call.function.name for call in answer.choices[0].message.tool_calls], ["get_time"])


def tools_answered():
    messages = user("get_weather of Paris")
    first = client().chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
    message = first.choices[0].message
    messages.append(message)
    messages.append({"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"})
    second = client().chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
    equal(second.choices[0].message.content, "The tool said: sunny")


def tools_streamed():
    with client().chat.completions.stream(
        model=MODEL, messages=user("get_weather and get_time of Paris"), tools=TOOLS
    ) as events:
        for _ in events:
            pass
        message = events.get_final_completion().choices[0].message
    equal([call.function.name for call in message.tool_calls], ["get_weather", "get_time"])
    for call in message.tool_calls:
        equal(sorted(json.loads(call.function.arguments)), ["city"])


class Forecast(BaseModel):
    city: str
    degrees: int


def json_schema():
    answer = client().chat.completions.parse(
        model=MODEL, messages=user("a forecast"), response_format=Forecast
    )
    assert isinstance(answer.choices[0].message.parsed, Forecast), answer


def json_object():
    answer = client().chat.completions.create(
        model=MODEL, messages=user("some json"), response_format={"type": "json_object"}
    )
    equal(json.loads(answer.choices[0].message.content), {"you_said": "some json"})


def request_id():
    raw = client().chat.completions.with_raw_response.create(model=MODEL, messages=user("a"))
    sent = raw.headers.get("x-request-id")
    assert sent, dict(raw.headers)
    equal(raw.parse()._request_id, sent)
    other = client().chat.completions.create(model=MODEL, messages=user("a"))
    assert other._request_id not in (None, sent), other._request_id
    error = raises(
        openai.NotFoundError,
        lambda: client().chat.completions.create(model="no-such-model", messages=user("a")),
    )
    assert error.request_id, error


def retries():
    raw = client().chat.completions.with_raw_response.create(model=FLAKY_MODEL, messages=user("a"))
    equal(raw.retries_taken, 1)
    assert raw.parse().choices[0].message.content, raw.text


def refusals():
    calls = []
    http_client = openai.DefaultHttpxClient(event_hooks={"request": [calls.append]})
    strict = client(http_client=http_client)

    def bad(**change):
        request = {"model": MODEL, "messages": user("a")} | change
        return lambda: strict.chat.completions.create(**request)

    error = raises(openai.BadRequestError, bad(temperature="hot"))
    equal((error.status_code, error.param), (400, "temperature"))
    error = raises(openai.BadRequestError, bad(n=0))
    equal(error.param, "n")
    error = raises(openai.NotFoundError, bad(model="no-such-model"))
    equal(error.code, "model_not_found")
    equal(len(calls), 3)


def wrong_key():
    stranger = client(api_key="wg-nobody")
    raises(
        openai.AuthenticationError,
        lambda: stranger.chat.completions.create(model=MODEL, messages=user("a")),
    )


def cut_stream():
    chunks = client().chat.completions.create(model=CUT_MODEL, messages=user("one two"), stream=True)
    received = []
    error = raises(openai.APIError, lambda: received.extend(iter(chunks)))
    assert error.message, error


def embeddings():
    # The client asks for base64 unless told otherwise, and decodes it.
    for options in [{}, {"encoding_format": "float"}]:
        answer = client().embeddings.create(model=EMBEDDING_MODEL, input=["one", "two"], **options)
        equal([item.embedding for item in answer.data], [[0.5, 0.0], [0.5, 1.0]])
        equal((answer.usage.prompt_tokens, answer.usage.total_tokens), (6, 6))
    error = raises(
        openai.BadRequestError, lambda: client().embeddings.create(model=EMBEDDING_MODEL, input=[])
    )
    equal(error.param, "input")


def embeddings_in_parts():
    texts = ["one", "two", "one", "three", "two"]
    answer = client().embeddings.create(model="sandbox-embedding", input=texts, dimensions=16)
    vectors = [item.embedding for item in answer.data]
    equal([item.index for item in answer.data], [0, 1, 2, 3, 4])
    equal((vectors[0], vectors[1], len(vectors[3])), (vectors[2], vectors[4], 16))
    tokens = client().embeddings.create(model="sandbox-embedding", input=[[1, 2], [3], [1, 2]])
    equal((tokens.data[0].embedding, tokens.usage.prompt_tokens), (tokens.data[2].embedding, 5))


def images():
    def is_png(data):
        return base64.b64decode(data).startswith(b"\x89PNG")

    answer = client().images.generate(model=IMAGE_MODEL, prompt="a sun", size="1024x1024")
    assert answer.created > 0 and is_png(answer.data[0].b64_json), answer
    usage = answer.usage
    assert usage.input_tokens > 0 and usage.output_tokens_details.image_tokens > 0, usage
    equal(usage.total_tokens, usage.input_tokens + usage.output_tokens)
    events = list(
        client().images.generate(model=IMAGE_MODEL, prompt="a sun", stream=True, partial_images=1)
    )
    equal([event.type for event in events], ["image_generation.completed"])
    assert is_png(events[0].b64_json) and events[0].usage.total_tokens > 0, events
    error = raises(
        openai.BadRequestError, lambda: client().images.generate(model=IMAGE_MODEL, prompt="a", n=11)
    )
    equal(error.param, "n")
    png = base64.b64decode(answer.data[0].b64_json)
    for files in [("a.png", png), [("a.png", png), ("b.png", png)]]:
        edited = client().images.edit(model=IMAGE_MODEL, prompt="a hat", image=files, n=1)
        assert is_png(edited.data[0].b64_json) and edited.output_format == "png", edited


def speech():
    options = {"model": SPEECH_MODEL, "voice": "alloy", "input": "one two"}
    audio = client().audio.speech
    equal(audio.create(response_format="wav", **options).read()[:4], b"RIFF")
    with audio.with_streaming_response.create(response_format="pcm", **options) as answer:
        equal(answer.headers["content-type"], "audio/pcm")
        assert sum(len(piece) for piece in answer.iter_bytes()) > 4000
    error = raises(openai.BadRequestError, lambda: audio.create(speed=9, **options))
    equal(error.param, "speed")


def moderations():
    answer = client().moderations.create(
        model="sandbox-moderation", input=["a kind word", "they talked of violence"]
    )
    equal([result.flagged for result in answer.results], [False, True])
    assert answer.results[1].categories.violence and not answer.results[1].categories.hate, answer
    parts = [
        {"type": "text", "text": "a kind word"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    ]
    equal(len(client().moderations.create(model="sandbox-moderation", input=parts).results), 1)
    error = raises(
        openai.BadRequestError, lambda: client().moderations.create(model="sandbox-moderation", input=[])
    )
    equal(error.param, "input")


def videos():
    options = {"model": "sandbox-video", "prompt": "a weir", "size": "1280x720"}
    ordered = client().videos.create(seconds="4", **options)
    equal((ordered.object, ordered.status, ordered.seconds), ("video", "queued", "4"))
    done = client().videos.poll(ordered.id, poll_interval_ms=100)
    equal((done.id, done.status, done.progress, done.error), (ordered.id, "completed", 100, None))
    assert done.completed_at >= done.created_at, done
    content = client().videos.download_content(ordered.id).read()
    equal((len(content), content[4:8]), (4 * 32768, b"ftyp"))
    picture = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")
    refused = client().videos.create_and_poll(
        seconds="4", input_reference=("a.png", picture), **{**options, "prompt": "filter"}
    )
    equal((refused.status, refused.error.code), ("failed", "moderation_blocked"))
    listed = [video.id for video in client().videos.list(limit=1)]
    equal(listed, [refused.id, ordered.id])
    equal(client().videos.delete(ordered.id).deleted, True)
    raises(openai.NotFoundError, lambda: client().videos.retrieve(ordered.id))
    error = raises(openai.BadRequestError, lambda: client().videos.create(seconds="9s", **options))
    equal(error.param, "seconds")


def models():
    listed = [model.id for model in client().models.list()]
    assert MODEL in listed and len(listed) == len(set(listed)), listed
    one = client().models.retrieve(MODEL)
    equal((one.id, one.object), (MODEL, "model"))
    raises(openai.NotFoundError, lambda: client().models.retrieve("nowhere/nothing"))


def wav():
    """A second of silence."""
    head = b"RIFF" + (16036).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little")
    head += bytes([1, 0, 1, 0]) + (8000).to_bytes(4, "little") + (16000).to_bytes(4, "little")
    return head + bytes([2, 0, 16, 0]) + b"data" + (16000).to_bytes(4, "little") + bytes(16000)


def transcriptions():
    audio = client().audio
    text = "The recording has 16044 bytes."
    options = {"model": TRANSCRIPTION_MODEL, "file": ("a.wav", wav(), "audio/wav")}
    answer = audio.transcriptions.create(language="en", prompt="names", temperature=0, **options)
    equal((answer.text, answer.usage.type, answer.usage.seconds), (text, "duration", 2))
    verbose = audio.transcriptions.create(
        response_format="verbose_json", timestamp_granularities=["segment"], **options
    )
    equal((verbose.text, verbose.segments[0].text, verbose.duration), (text, text, 2))
    speakers = audio.transcriptions.create(
        response_format="diarized_json", chunking_strategy="auto", **options
    )
    equal((speakers.segments[0].speaker, speakers.text), ("A", text))
    equal(audio.transcriptions.create(response_format="text", **options).strip(), text)
    srt = audio.transcriptions.create(response_format="srt", **options)
    equal(srt, f"1\n00:00:00,000 --> 00:00:02,000\n{text}\n\n")
    vtt = audio.transcriptions.create(response_format="vtt", **options)
    assert vtt.startswith("WEBVTT\n\n00:00:00.000 --> "), vtt
    events = list(audio.transcriptions.create(stream=True, **options))
    deltas = [event.delta for event in events if event.type == "transcript.text.delta"]
    equal(("".join(deltas), events[-1].type, events[-1].text), (text, "transcript.text.done", text))
    assert len(deltas) > 2, events


def translations():
    audio = client().audio
    options = {"model": TRANSCRIPTION_MODEL, "file": ("a.wav", wav(), "audio/wav")}
    text = "The recording has 16044 bytes."
    equal(audio.translations.create(**options).text, text)
    verbose = audio.translations.create(response_format="verbose_json", **options)
    equal(verbose.segments[0].text, text)
    empty = {**options, "file": ("a.wav", b"", "audio/wav")}
    error = raises(openai.BadRequestError, lambda: audio.translations.create(**empty))
    equal(error.param, "file")


CHECKS = [
    plain, choices, length, stream, stream_usage, tools_parallel, tools_forced, tools_answered,
    tools_streamed, json_schema, json_object, request_id, retries, refusals, wrong_key, cut_stream,
    completion, completion_streamed, completion_of_a_base_model, completion_that_no_model_can_make,
    embeddings, embeddings_in_parts, images, speech, moderations, models, transcriptions,
    translations, videos,
]

if __name__ == "__main__":
    checks.main(CHECKS)
