"""The model gateway by the OpenAI client. Needs WEIRGATE_KEY; see ../README.md."""

import os

from openai import APIError, OpenAI

client = OpenAI(
    base_url=os.environ.get("WEIRGATE_URL", "http://127.0.0.1:8080") + "/v1",
    api_key=os.environ["WEIRGATE_KEY"],
)
MODEL = os.environ.get("MODEL", "sandbox-chat")


def whole():
    answer = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "Hello"}]
    )
    print(answer.choices[0].message.content)
    # Members beyond the OpenAI convention are there too.
    print("  served by", answer.metadata["used_provider"], "for", answer.usage.cost, "USD")


def streamed():
    stream = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Hello"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    for chunk in stream:
        for choice in chunk.choices:
            print(choice.delta.content or "", end="", flush=True)
        if chunk.usage:
            print("\n ", chunk.usage.total_tokens, "tokens")


def with_a_tool():
    tool = {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
    answer = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "get_weather of Paris"}], tools=[tool]
    )
    for call in answer.choices[0].message.tool_calls:
        print(call.function.name, call.function.arguments)


def broken():
    """A stream that breaks off never looks complete: the client raises."""
    stream = client.chat.completions.create(
        model="sandbox-cut", messages=[{"role": "user", "content": "Hello"}], stream=True
    )
    try:
        for _ in stream:
            pass
    except APIError as error:
        print("broken off:", error.code)


whole()
streamed()
with_a_tool()
broken()
