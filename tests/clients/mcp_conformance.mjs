// The conformance suite of the Model Context Protocol (npm: @modelcontextprotocol/conformance), its scenarios for servers, against
// the server at MCP_URL. The suite knows no credentials, so a proxy of this script adds the API key and leaves the rest as it came.
//
// Each scenario that the suite has is a check here or stands in `NOT_FOR_US` with the reason: a scenario that a later version adds
// fails the check `list`. Environment: MCP_URL, API_KEY. Arguments: the checks to run; without any, all. Run it in the folder that
// holds node_modules. One line per check on stdout; exit 1 when one failed, 2 for an unknown name.

import { execFile } from "node:child_process";
import http from "node:http";
import { createRequire } from "node:module";
import { promisify } from "node:util";

import { main } from "./checks.mjs";

const run = promisify(execFile);
// Modules are looked for where the script was started.
const require = createRequire(`${process.cwd()}/`);
const suite = require.resolve("@modelcontextprotocol/conformance/dist/index.js");
const server = new URL(process.env.MCP_URL);

const SCENARIOS = [
  "server-initialize",
  "ping",
  "completion-complete",
  "tools-list",
  "resources-list",
  "prompts-list",
  "dns-rebinding-protection",
];

const FIXTURES = "calls a tool, resource or prompt that only the suite's own reference server has";
const NO_REQUESTS = "the server asks its client for nothing: no sampling, no elicitation";
const NOT_FOR_US = {
  "logging-set-level": "the server has no log for clients, and does not announce one",
  "tools-call-simple-text": FIXTURES,
  "tools-call-image": FIXTURES,
  "tools-call-audio": FIXTURES,
  "tools-call-embedded-resource": FIXTURES,
  "tools-call-mixed-content": FIXTURES,
  "tools-call-with-logging": FIXTURES,
  "tools-call-error": FIXTURES,
  "tools-call-with-progress": FIXTURES,
  "tools-call-sampling": NO_REQUESTS,
  "tools-call-elicitation": NO_REQUESTS,
  "json-schema-2020-12": FIXTURES,
  "elicitation-sep1034-defaults": NO_REQUESTS,
  "elicitation-sep1330-enums": NO_REQUESTS,
  "server-sse-polling": FIXTURES,
  "server-sse-multiple-streams": "it names revision 2025-03-26 in a session of a later one; that revision is not served",
  "resources-read-text": FIXTURES,
  "resources-read-binary": FIXTURES,
  "resources-templates-read": FIXTURES,
  "resources-subscribe": "nothing can be subscribed to, and the server does not announce it",
  "resources-unsubscribe": "nothing can be subscribed to, and the server does not announce it",
  "prompts-get-simple": FIXTURES,
  "prompts-get-with-args": FIXTURES,
  "prompts-get-embedded-resource": FIXTURES,
  "prompts-get-with-image": FIXTURES,
};

const proxy = http.createServer((request, response) => {
  const { method, url: path } = request;
  const headers = { ...request.headers, authorization: `Bearer ${process.env.API_KEY}` };
  // A page that was pointed at this machine names another host; all others mean the gateway.
  if (headers.host === `127.0.0.1:${proxy.address().port}`) headers.host = server.host;
  const asked = http.request({ host: server.hostname, port: server.port, method, path, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  asked.on("error", () => response.destroy());
  response.on("close", () => asked.destroy());
  request.pipe(asked);
});

async function conformance(...args) {
  try {
    return (await run(process.execPath, [suite, ...args], { timeout: 60_000 })).stdout;
  } catch (error) {
    throw new Error(`${error.message.split("\n")[0]}\n${error.stdout}\n${error.stderr}`);
  }
}

async function scenario(name) {
  const told = await conformance("server", "--url", `http://127.0.0.1:${proxy.address().port}/mcp`, "--scenario", name);
  const passed = /Passed: (\d+)\/(\d+)/.exec(told);
  if (!passed || passed[1] !== passed[2]) throw new Error(`not all passed\n${told}`);
}

async function list() {
  const told = await conformance("list", "--server");
  const named = [...told.matchAll(/^ {2}- (\S+)/gm)].map((match) => match[1]);
  const known = new Set([...SCENARIOS, ...Object.keys(NOT_FOR_US)]);
  const unknown = named.filter((name) => !known.has(name));
  if (named.length === 0 || unknown.length > 0) throw new Error(`scenarios without a word here: ${unknown}`);
}

proxy.listen(0, "127.0.0.1");
await new Promise((resolve) => proxy.once("listening", resolve));
await main({ list, ...Object.fromEntries(SCENARIOS.map((name) => [name, () => scenario(name)])) });
proxy.close();
proxy.closeAllConnections();
