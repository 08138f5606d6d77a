// Acceptance of the gateway's OAuth server by the official SDK for TypeScript of the Model Context Protocol: it finds the server,
// registers itself, sends a person to the consent page, and exchanges and renews tokens. This script is the person.
//
// Environment: MCP_URL, API_KEY; the model sandbox serves `sandbox-chat`. Arguments: the checks to run; without any, all. Run it
// in the folder that holds node_modules. One line per check on stdout; exit 1 when one failed, 2 for an unknown name.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";

import { main } from "./checks.mjs";

const require = createRequire(process.cwd() + "/");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { UnauthorizedError } = require("@modelcontextprotocol/sdk/client/auth.js");

const hello = { model: "sandbox-chat", messages: [{ role: "user", content: "Hello" }] };

// What an application keeps between its requests.
class Memory {
  redirectUrl = "http://127.0.0.1:39321/callback";
  kept = {};

  constructor(method) {
    this.clientMetadata = {
      client_name: "Acceptance <test>",
      redirect_uris: [this.redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: method,
    };
  }

  state = () => (this.kept.state ??= randomUUID());
  clientInformation = () => this.kept.client;
  saveClientInformation = (client) => void (this.kept.client = client);
  tokens = () => this.kept.tokens;
  saveTokens = (tokens) => void (this.kept.tokens = tokens);
  redirectToAuthorization = (url) => void (this.kept.url = url);
  saveCodeVerifier = (verifier) => void (this.kept.verifier = verifier);
  codeVerifier = () => this.kept.verifier;
}

function transport(authProvider) {
  return new StreamableHTTPClientTransport(new URL(process.env.MCP_URL), { authProvider });
}

async function connected(memory) {
  const client = new Client({ name: "acceptance", version: "1" });
  await client.connect(transport(memory));
  return client;
}

// Reads a field or an attribute of the page.
function find(html, pattern) {
  const found = html.match(pattern);
  assert.ok(found, `${pattern} is not in ${html}`);
  return found[1];
}

// Opens the page, answers it, and returns the response to the answer.
async function answer(url, fields) {
  const page = await fetch(url);
  const html = await page.text();
  assert.equal(page.status, 200, html);
  assert.ok(html.includes("Acceptance &lt;test&gt;"), html);
  const action = new URL(find(html, /<form method="post" action="([^"]*)"/), url);
  const request = find(html, /name="request" value="([^"]*)"/);
  const cookie = page.headers.getSetCookie().map((line) => line.split(";")[0]).join("; ");
  const headers = { cookie, origin: action.origin };
  const body = new URLSearchParams({ request, ...fields });
  return fetch(action, { method: "POST", headers, body, redirect: "manual" });
}

function landing(response, memory) {
  assert.equal(response.status, 303);
  const url = new URL(response.headers.get("location"));
  assert.equal(url.origin + url.pathname, memory.redirectUrl);
  assert.equal(url.searchParams.get("state"), memory.kept.state);
  assert.equal(url.searchParams.get("iss"), new URL(process.env.MCP_URL).origin);
  return url.searchParams;
}

// Goes all the way to tokens.
async function signedIn(method) {
  const memory = new Memory(method);
  const first = transport(memory);
  const client = new Client({ name: "acceptance", version: "1" });
  await assert.rejects(client.connect(first), UnauthorizedError);
  const allowed = await answer(memory.kept.url, { decision: "allow", key: process.env.API_KEY });
  await first.finishAuth(landing(allowed, memory).get("code"));
  return memory;
}

async function call(client) {
  await client.listTools();
  const said = await client.callTool({ name: "chat", arguments: hello });
  assert.equal(said.content[0].text, "You said: Hello");
}

const checks = {
  async signs_in() {
    for (const method of ["none", "client_secret_post", "client_secret_basic"]) {
      const memory = await signedIn(method);
      assert.equal(Boolean(memory.kept.client.client_secret), method !== "none", method);
      assert.notEqual(memory.kept.tokens.access_token, process.env.API_KEY);
      assert.equal(memory.kept.tokens.token_type, "Bearer");
      const client = await connected(memory);
      await call(client);
      await client.close();
    }
  },

  async renews() {
    const memory = await signedIn("none");
    const before = memory.kept.tokens;
    memory.kept.tokens = { ...before, access_token: before.access_token.slice(0, -4) + "AAAA" };
    const url = memory.kept.url;
    const client = await connected(memory);
    await call(client);
    assert.notEqual(memory.kept.tokens.refresh_token, before.refresh_token);
    assert.equal(memory.kept.url, url, "a person was asked again");
    await client.close();
  },

  async denied() {
    const memory = new Memory("none");
    await assert.rejects(connected(memory), UnauthorizedError);
    const told = landing(await answer(memory.kept.url, { decision: "deny", key: "" }), memory);
    assert.equal(told.get("error"), "access_denied");
    assert.equal(told.get("code"), null);
  },

  async refused() {
    const memory = new Memory("none");
    await assert.rejects(connected(memory), UnauthorizedError);
    const again = await answer(memory.kept.url, { decision: "allow", key: "wg_wrong" });
    assert.equal(again.headers.get("location"), null);
    assert.match(await again.text(), /role="alert"/);
  },
};

await main(checks);
