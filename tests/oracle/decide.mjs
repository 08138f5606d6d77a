// Decides the users of `vectors.jsonl` with the public npm SDK; writes the same lines to `vectors-npm.jsonl`.
// Usage: node decide.mjs FOLDER
import { readFileSync, writeFileSync } from "node:fs";
import { createInstance, createStaticProjectConfigManager, OptimizelyDecideOption } from "@optimizely/optimizely-sdk";

const folder = process.argv[2];
const clients = new Map();
const out = [];

function client(number) {
  if (!clients.has(number)) {
    const datafile = readFileSync(`${folder}/${number}.json`, "utf8");
    clients.set(number, createInstance({ projectConfigManager: createStaticProjectConfigManager({ datafile }) }));
  }
  return clients.get(number);
}

for (const line of readFileSync(`${folder}/vectors.jsonl`, "utf8").trim().split("\n")) {
  const vector = JSON.parse(line);
  const context = client(vector.datafile).createUserContext(vector.user, vector.attributes);
  for (const [flagKey, ruleKey, variationKey] of vector.forced) {
    context.setForcedDecision({ flagKey, ...(ruleKey === null ? {} : { ruleKey }) }, { variationKey });
  }
  const decided = context.decideAll([OptimizelyDecideOption.DISABLE_DECISION_EVENT]);
  vector.decisions = Object.fromEntries(
    Object.entries(decided).map(([key, one]) => [key, [one.variationKey, one.enabled, one.ruleKey, one.variables]]),
  );
  out.push(JSON.stringify(vector));
}
writeFileSync(`${folder}/vectors-npm.jsonl`, out.join("\n") + "\n");
process.exit(0);
