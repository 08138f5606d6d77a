// Acceptance of the gateway by the official SDK for TypeScript of the Model Context Protocol.
//
// Environment: MCP_URL, API_KEY; the model sandbox serves `sandbox-chat`, and `sandbox` is an SDK key. Arguments: the checks to
// run; without any, all. Run it in the folder that holds node_modules. One line per check on stdout; exit 1 when one failed, 2
// for an unknown name.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

import { main } from "./checks.mjs";

const require = createRequire(process.cwd() + "/");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const hello = { model: "sandbox-chat", messages: [{ role: "user", content: "Hello" }] };

async function connected(key = process.env.API_KEY) {
  const requestInit = { headers: { Authorization: `Bearer ${key}` } };
  const client = new Client({ name: "acceptance", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(process.env.MCP_URL), { requestInit }));
  return client;
}

const checks = {
  async begins() {
    const client = await connected();
    assert.equal(client.getServerVersion().name, "weirgate");
    assert.ok(client.getServerCapabilities().tools);
    await client.ping();
    const names = (await client.listTools()).tools.map((tool) => tool.name);
    for (const name of ["chat", "list-models", "key-status", "decide"]) assert.ok(names.includes(name), name);
    await client.close();
  },

  async tools() {
    const client = await connected();
    // The SDK checks results against the schemas of the tools that it has listed.
    await client.listTools();
    const said = await client.callTool({ name: "chat", arguments: hello });
    assert.equal(said.content[0].text, "You said: Hello");
    assert.equal(said.structuredContent.model, "sandbox/sandbox-chat");
    const models = await client.callTool({ name: "list-models", arguments: { limit: 5 } });
    assert.equal(models.structuredContent.models[0].id, "sandbox-chat");
    const decided = await client.callTool({ name: "decide", arguments: { user_id: "ada", sdk_key: "sandbox" } });
    assert.equal(decided.structuredContent.decisions.length, 2);
    const asked = { user_id: "ada", flag_keys: ["checkout"], sdk_key: "sandbox" };
    const explained = await client.callTool({ name: "explain-decision", arguments: asked });
    assert.equal(explained.structuredContent.decisions[0].rules[0].key, "checkout_test");
    const left = await client.callTool({ name: "graph-limits", arguments: { authorization: "epi-single k1" } });
    assert.equal(left.structuredContent.tenant, "t1");
    await client.close();
  },

  async usage() {
    const client = await connected();
    await client.listTools();
    const told = await client.callTool({ name: "get-usage", arguments: {} });
    assert.equal(told.structuredContent.granularity, "day");
    const parts = await client.callTool({ name: "get-usage-breakdown", arguments: { group_by: "provider" } });
    assert.equal(parts.structuredContent.group_by, "provider");
    await client.close();
  },

  async resources() {
    const client = await connected();
    const { resources } = await client.listResources();
    assert.deepEqual(resources.map((one) => one.uri), ["weirgate://models", "weirgate://prompts"]);
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.equal(resourceTemplates[0].uriTemplate, "weirgate://models/{id}");
    const { contents } = await client.readResource({ uri: "weirgate://models/sandbox-chat" });
    assert.equal(JSON.parse(contents[0].text).id, "sandbox-chat");
    const ref = { type: "ref/resource", uri: "weirgate://models/{id}" };
    const { completion } = await client.complete({ ref, argument: { name: "id", value: "sandbox-" } });
    assert.ok(completion.values.includes("sandbox-chat"));
    await assert.rejects(client.readResource({ uri: "weirgate://models/nobody" }), { code: -32002 });
    await client.close();
  },

  async prompts() {
    const client = await connected();
    const { prompts } = await client.listPrompts();
    assert.deepEqual(prompts.map((prompt) => prompt.name), ["support/hi"]);
    const filled = { name: "Ada", free: "Hi", loud: "true" };
    const { messages } = await client.getPrompt({ name: "support/hi", arguments: filled });
    assert.equal(messages[0].content.text, 'Greet Ada 2.5 times, "true".');
    await assert.rejects(client.getPrompt({ name: "support/hi" }), { code: -32602 });
    await client.close();
  },

  async failures() {
    const client = await connected();
    await client.listTools();
    const wrong = await client.callTool({ name: "chat", arguments: { ...hello, model: "nobody" } });
    assert.equal(wrong.isError, true);
    assert.match(wrong.content[0].text, /nobody/);
    await assert.rejects(client.callTool({ name: "no-such-tool", arguments: {} }), { code: -32602 });
    await client.close();
  },

  async resumes() {
    // The stream of a call breaks behind its first event, and the SDK comes back for the rest.
    let cut = 0;
    let back = 0;
    const cutting = async (url, init) => {
      if (new Headers(init?.headers).has("last-event-id")) back += 1;
      const response = await fetch(url, init);
      const isCall = init?.method === "POST" && String(init.body).includes("tools/call");
      if (!isCall || !response.headers.get("content-type")?.includes("event-stream")) return response;
      cut += 1;
      const reader = response.body.getReader();
      const text = new TextDecoder().decode((await reader.read()).value);
      await reader.cancel();
      const first = new TextEncoder().encode(text.slice(0, text.indexOf("\n\n") + 2));
      let isRead = false;
      const body = new ReadableStream({
        pull(controller) {
          if (isRead) return controller.error(new Error("cut"));
          isRead = true;
          controller.enqueue(first);
        },
      });
      return new Response(body, { status: response.status, headers: response.headers });
    };
    const requestInit = { headers: { Authorization: `Bearer ${process.env.API_KEY}` } };
    const client = new Client({ name: "acceptance", version: "1" });
    const transport = new StreamableHTTPClientTransport(new URL(process.env.MCP_URL), { requestInit, fetch: cutting });
    await client.connect(transport);
    const said = await client.callTool({ name: "chat", arguments: hello }, undefined, { onprogress() {} });
    assert.equal(said.content[0].text, "You said: Hello");
    assert.deepEqual([cut, back], [1, 1]);
    await client.close();
  },

  async stops() {
    const client = await connected();
    await client.listTools();
    const begun = Date.now();
    const slow = client.callTool({ name: "chat", arguments: { ...hello, model: "sandbox-slow" } }, undefined, {
      signal: AbortSignal.timeout(200),
    });
    await assert.rejects(slow);
    assert.ok(Date.now() - begun < 1500, "the client waited for the answer");
    // The session goes on, and its next call is answered.
    assert.equal((await client.callTool({ name: "chat", arguments: hello })).content[0].text, "You said: Hello");
    await client.close();
  },

  async ends() {
    const client = await connected();
    const { transport } = client;
    const session = transport.sessionId;
    await transport.terminateSession();
    const headers = { Authorization: `Bearer ${process.env.API_KEY}`, "Mcp-Session-Id": session };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
    const json = { "Content-Type": "application/json" };
    const late = await fetch(process.env.MCP_URL, { method: "POST", headers: { ...headers, ...json }, body });
    assert.equal(late.status, 404);
    await client.close();
    await (await connected()).close();
  },

  async refused() {
    await assert.rejects(connected("wg_none"), { code: 401 });
  },
};

await main(checks);
