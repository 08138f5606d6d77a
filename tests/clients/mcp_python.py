"""Acceptance of the gateway by the official SDK for Python of the Model Context Protocol, in the revision that begins with
`initialize` and in the stateless one.

Environment: MCP_URL, API_KEY; the model sandbox serves `sandbox-chat`, and `sandbox` is an SDK key. Arguments: the checks to
run; without any, all. One line per check on stdout; exit 1 when one failed, 2 for an unknown name.
"""

import json
import os
from contextlib import asynccontextmanager

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceTemplateReference

import checks

URL = os.environ["MCP_URL"]
KEY = os.environ.get("API_KEY", "none")
HI = {"model": "sandbox-chat", "messages": [{"role": "user", "content": "Hello"}]}


def equal(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


@asynccontextmanager
async def connected(mode, key=KEY):
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        async with Client(streamable_http_client(URL, http_client=http), mode=mode) as client:
            yield client


async def begins(mode, version):
    async with connected(mode) as client:
        equal(client.protocol_version, version)
        equal(client.server_info.name, "weirgate")
        listed = await client.list_tools()
        assert {"chat", "list-models", "key-status", "decide"} <= {tool.name for tool in listed.tools}


async def legacy():
    await begins("legacy", "2025-11-25")


async def stateless():
    await begins("auto", "2026-07-28")


async def tools():
    for mode in ["legacy", "auto"]:
        async with connected(mode) as client:
            # The SDK checks results against the schemas of the tools.
            await client.list_tools()
            said = await client.call_tool("chat", HI)
            equal((said.is_error, said.content[0].text), (False, "You said: Hello"))
            equal(said.structured_content["model"], "sandbox/sandbox-chat")
            models = await client.call_tool("list-models", {"limit": 5})
            equal(models.structured_content["models"][0]["id"], "sandbox-chat")
            decided = await client.call_tool("decide", {"user_id": "ada", "sdk_key": "sandbox"})
            equal(len(decided.structured_content["decisions"]), 2)
            asked = {"user_id": "ada", "flag_keys": ["checkout"], "sdk_key": "sandbox"}
            explained = await client.call_tool("explain-decision", asked)
            equal(explained.structured_content["decisions"][0]["rules"][0]["key"], "checkout_test")
            asked = {"authorization": "epi-single k1", "operation": "POST /content/v2"}
            left = await client.call_tool("graph-limits", asked)
            equal(left.structured_content["data"][0]["remaining"], 1500)


async def usage():
    for mode in ["legacy", "auto"]:
        async with connected(mode) as client:
            await client.list_tools()
            told = await client.call_tool("get-usage", {"granularity": "hour"})
            equal((told.is_error, told.structured_content["granularity"]), (False, "hour"))
            told = await client.call_tool("get-usage-breakdown", {"group_by": "api_key", "limit": 1})
            equal((told.is_error, told.structured_content["group_by"]), (False, "api_key"))


async def resources():
    for mode in ["legacy", "auto"]:
        async with connected(mode) as client:
            listed = await client.list_resources()
            equal([str(one.uri) for one in listed.resources], ["weirgate://models", "weirgate://prompts"])
            listed = await client.list_resource_templates()
            equal(
                [one.uri_template for one in listed.resource_templates],
                ["weirgate://models/{id}", "weirgate://prompts/{name}"],
            )
            read = await client.read_resource("weirgate://models/sandbox-chat")
            equal(json.loads(read.contents[0].text)["id"], "sandbox-chat")
            template = ResourceTemplateReference(type="ref/resource", uri="weirgate://models/{id}")
            completed = await client.complete(template, {"name": "id", "value": "sandbox-"})
            assert "sandbox-chat" in completed.completion.values, completed
            try:
                await client.read_resource("weirgate://models/nobody")
            except MCPError as error:
                equal(error.code, {"legacy": -32002, "auto": -32602}[mode])
            else:
                raise AssertionError("an unknown resource was read")


async def prompts():
    for mode in ["legacy", "auto"]:
        async with connected(mode) as client:
            listed = (await client.list_prompts()).prompts
            equal([prompt.name for prompt in listed], ["support/hi"])
            required = [argument.name for argument in listed[0].arguments if argument.required]
            equal(required, ["name", "free"])
            got = await client.get_prompt("support/hi", {"name": "Ada", "free": "Hi", "times": "3"})
            equal(got.messages[0].content.text, 'Greet Ada 3 times, "false".')
            equal((got.messages[1].role, got.messages[1].content.text), ("user", "Hi"))
            try:
                await client.get_prompt("support/hi", {"name": "Ada"})
            except MCPError as error:
                equal(error.code, -32602)
                assert "arguments.free" in error.message, error
            else:
                raise AssertionError("a prompt was rendered without its arguments")


async def failures():
    for mode in ["legacy", "auto"]:
        async with connected(mode) as client:
            wrong = await client.call_tool("chat", {**HI, "model": "nobody"})
            equal(wrong.is_error, True)
            assert "nobody" in wrong.content[0].text, wrong
            try:
                await client.call_tool("no-such-tool", {})
            except MCPError as error:
                equal(error.code, -32602)
            else:
                raise AssertionError("an unknown tool was called")


def innermost(error):
    return innermost(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


async def refused():
    try:
        async with connected("legacy", "wg_none"):
            pass
    except BaseException as error:
        assert isinstance(innermost(error), MCPError), repr(error)
    else:
        raise AssertionError("a wrong key was taken")


CHECKS = [legacy, stateless, tools, usage, resources, prompts, failures, refused]

if __name__ == "__main__":
    checks.main(CHECKS)
