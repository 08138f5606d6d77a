// The public SDK on the datafile that Weirgate serves, and the same decisions over HTTP; see ../README.md.
import { createRequire } from "node:module";

const { createInstance, createStaticProjectConfigManager } = createRequire(process.cwd() + "/")(
  "@optimizely/optimizely-sdk",
);

const url = process.env.WEIRGATE_URL ?? "http://127.0.0.1:8080";
const headers = { "X-Platform-SDK-Key": process.env.WEIRGATE_SDK_KEY ?? "sandbox" };

const datafile = await (await fetch(`${url}/v1/datafile`, { headers })).text();
const sdk = createInstance({ projectConfigManager: createStaticProjectConfigManager({ datafile }) });

let different = 0;
for (const userId of ["ada", "bob", "cleo"]) {
  const userAttributes = { country: "DE" };
  const here = sdk.createUserContext(userId, userAttributes).decide("checkout");
  const answer = await fetch(`${url}/v1/decide?keys=checkout`, {
    method: "POST",
    headers: { ...headers, "Content-Type": "application/json" },
    body: JSON.stringify({ userId, userAttributes }),
  });
  const there = await answer.json();
  console.log(`${userId}: ${here.variationKey} by the SDK, ${there.variationKey} by Weirgate`);
  if (here.variationKey !== there.variationKey) different += 1;
}
process.exit(different);
