"""Acceptance of the gateway's OAuth server by the official SDK for Python of the Model Context Protocol: it finds the server,
registers itself, sends a person to the consent page, and exchanges and renews tokens. This script is the person.

Environment: MCP_URL, API_KEY; the model sandbox serves `sandbox-chat`. Arguments: the checks to run; without any, all. One line
per check on stdout; exit 1 when one failed, 2 for an unknown name.
"""

import os
import re
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urljoin, urlsplit

import checks
import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

URL = os.environ["MCP_URL"]
KEY = os.environ["API_KEY"]
ISSUER = "{0.scheme}://{0.netloc}".format(urlsplit(URL))
CALLBACK = "http://127.0.0.1:39322/callback"
HI = {"model": "sandbox-chat", "messages": [{"role": "user", "content": "Hello"}]}


def equal(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


class Memory:
    """What an application keeps between its requests."""

    def __init__(self):
        self.tokens = None
        self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


def find(html, pattern):
    found = re.search(pattern, html)
    assert found, f"{pattern} is not in {html}"
    return found[1]


class Person:
    """Whoever is sent to the consent page."""

    def __init__(self, decision):
        self.decision = decision
        self.visits = 0
        self.landed = None

    async def visit(self, url):
        self.visits += 1
        async with httpx2.AsyncClient(timeout=30) as browser:
            page = await browser.get(url)
            equal(page.status_code, 200)
            assert "Acceptance in Python" in page.text, page.text
            action = urljoin(url, find(page.text, r'<form method="post" action="([^"]*)"'))
            request = find(page.text, r'name="request" value="([^"]*)"')
            form = {"request": request, "decision": self.decision, "key": KEY if self.decision == "allow" else ""}
            cookie = "; ".join(line.split(";")[0] for line in page.headers.get_list("set-cookie"))
            headers = {"origin": ISSUER, "cookie": cookie}
            answered = await browser.post(action, data=form, headers=headers, follow_redirects=False)
        equal(answered.status_code, 303)
        location = answered.headers["location"]
        assert location.startswith(f"{CALLBACK}?"), location
        self.landed = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        equal(self.landed["iss"], ISSUER)

    async def land(self):
        if "error" in self.landed:
            raise PermissionError(self.landed["error"])
        return AuthorizationCodeResult(code=self.landed["code"], state=self.landed["state"], iss=self.landed["iss"])


def provider(memory, person, method):
    metadata = OAuthClientMetadata(
        client_name="Acceptance in Python",
        redirect_uris=[CALLBACK],
        token_endpoint_auth_method=method,
    )
    return OAuthClientProvider(URL, metadata, memory, person.visit, person.land)


@asynccontextmanager
async def connected(auth, mode):
    async with httpx2.AsyncClient(auth=auth, timeout=30) as http:
        async with Client(streamable_http_client(URL, http_client=http), mode=mode) as client:
            yield client


async def call(client):
    await client.list_tools()
    said = await client.call_tool("chat", HI)
    equal((said.is_error, said.content[0].text), (False, "You said: Hello"))


async def signs_in():
    for mode, method in [("legacy", "none"), ("auto", "client_secret_post"), ("auto", "client_secret_basic")]:
        memory, person = Memory(), Person("allow")
        async with connected(provider(memory, person, method), mode) as client:
            await call(client)
        equal(person.visits, 1)
        equal(bool(memory.client.client_secret), method != "none")
        assert memory.tokens.access_token != KEY
        # Another start of the application has what was kept, and asks nobody.
        async with connected(provider(memory, person, method), mode) as client:
            await call(client)
        equal(person.visits, 1)


async def renews():
    memory, person = Memory(), Person("allow")
    auth = provider(memory, person, "none")
    async with connected(auth, "legacy") as client:
        await call(client)
        before = memory.tokens
        auth.context.token_expiry_time = 1
        await call(client)
    assert memory.tokens.refresh_token != before.refresh_token
    assert memory.tokens.access_token != before.access_token
    equal(person.visits, 1)


def innermost(error):
    return innermost(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


async def denied():
    memory, person = Memory(), Person("deny")
    try:
        async with connected(provider(memory, person, "none"), "legacy"):
            pass
    except BaseException as error:
        equal(str(innermost(error)), "access_denied")
    else:
        raise AssertionError("a client that was denied is connected")
    equal(memory.tokens, None)


CHECKS = [signs_in, renews, denied]


if __name__ == "__main__":
    checks.main(CHECKS)
