// Acceptance of the flag decisions by OpenFeature's web SDK with its provider for the remote evaluation protocol.
//
// Environment: OFREP_URL, SDK_KEY of a project with the flag `banner`, DATAFILE (the project's file), and its contents DATAFILE_ON
// and DATAFILE_OFF, with the flag on and off; it is off at first. Arguments: the checks to run; without any, all. Run it in the
// folder that holds node_modules. One line per check on stdout; exit 1 when one failed, 2 for an unknown name.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";

import { main } from "./checks.mjs";

const require = createRequire(process.cwd() + "/");
// A browser has it; Node.js has not.
globalThis.EventSource = require("eventsource").EventSource;
const { OpenFeature, ProviderEvents } = require("@openfeature/web-sdk");
const { OFREPWebProvider } = require("@openfeature/ofrep-web-provider");

const headers = [["X-Platform-SDK-Key", process.env.SDK_KEY]];
const write = (is_on) =>
  writeFileSync(process.env.DATAFILE, is_on ? process.env.DATAFILE_ON : process.env.DATAFILE_OFF);

/** Waits until a condition holds, for at most ten seconds. */
async function until(what, holds) {
  const end = Date.now() + 10_000;
  while (!holds()) {
    assert.ok(Date.now() < end, `${what} did not happen`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

const checks = {
  // Polling is off, so only the stream can tell of a change.
  async changes_arrive_without_polling() {
    write(false);
    const provider = new OFREPWebProvider({
      baseUrl: process.env.OFREP_URL,
      headers,
      cacheMode: "disabled",
    });
    await OpenFeature.setContext({ targetingKey: "ada" });
    await OpenFeature.setProviderAndWait(provider);
    const client = OpenFeature.getClient();
    let changes = 0;
    client.addHandler(ProviderEvents.ConfigurationChanged, () => (changes += 1));
    const value = () => client.getBooleanValue("banner", false);
    assert.equal(value(), false);
    write(true);
    await until("the flag's change", value);
    assert.ok(changes > 0);
    write(false);
    await until("the second change", () => !value());
    await OpenFeature.close();
  },
};

await main(checks);
