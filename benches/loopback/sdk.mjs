// Decides with the public npm SDK behind node:http, as the gateway does over HTTP: the other side of the bench.
// Usage: node sdk.mjs DATAFILE; it prints its address on the first line.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createInstance, createStaticProjectConfigManager, OptimizelyDecideOption } from "@optimizely/optimizely-sdk";

const datafile = readFileSync(process.argv[2], "utf8");
const client = createInstance({ projectConfigManager: createStaticProjectConfigManager({ datafile }) });
const options = [OptimizelyDecideOption.DISABLE_DECISION_EVENT];

function answer(url, body) {
  const { userId, userAttributes } = JSON.parse(body);
  const context = client.createUserContext(userId, userAttributes);
  const keys = url.searchParams.getAll("keys");
  const written = ({ userContext, ...decision }) => ({ ...decision, userContext: { userId, attributes: userAttributes ?? {} } });
  if (keys.length === 1) return written(context.decide(keys[0], options));
  const all = keys.length === 0 ? context.decideAll(options) : context.decideForKeys(keys, options);
  return Object.values(all).map(written);
}

const server = createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const text = JSON.stringify(answer(new URL(request.url, "http://localhost"), Buffer.concat(parts).toString()));
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
    response.end(text);
  });
});
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", () => console.log(`127.0.0.1:${server.address().port}`));
