// A person walks through the consent page in Chromium: with the right key and a wrong one, says no, comes late, submits twice, in
// the light and in the dark, on a narrow screen. Scripts are off in the pages, because the page needs none.
//
// Environment: GATEWAY (its origin), API_KEY, OLD_REQUEST and OLD_COOKIE (of a page that has expired), CHROMIUM (the program),
// SCREENSHOTS (a folder). Arguments: the checks to run; without any, all. Run it in the folder that holds node_modules. One line per
// check on stdout; exit 1 when one failed, 2 for an unknown name.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

import { main } from "../clients/checks.mjs";

const require = createRequire(process.cwd() + "/");
const { chromium } = require("playwright-core");

const { GATEWAY, API_KEY, OLD_REQUEST, OLD_COOKIE, CHROMIUM, SCREENSHOTS } = process.env;
const SCOPES = "models decisions limits:read account:read";

// The client: an application on this machine that waits for the answer.
const answers = [];
const application = createServer((request, response) => {
  const url = new URL(request.url, "http://client");
  if (url.pathname === "/callback") answers.push(url.searchParams);
  response.setHeader("content-type", "text/html; charset=utf-8");
  response.end("<!doctype html><title>Editor</title><h1>You may close this page.</h1>");
});
await new Promise((listening) => application.listen(0, "127.0.0.1", listening));
const callback = `http://127.0.0.1:${application.address().port}/callback`;

async function post(path, body, headers = {}) {
  const response = await fetch(GATEWAY + path, { method: "POST", body, headers });
  return { status: response.status, body: await response.json() };
}

// Registers a client and returns the link to the page, and what the client keeps for the answer.
async function asked(name = "Editor") {
  const metadata = { client_name: name, redirect_uris: [callback], token_endpoint_auth_method: "none" };
  const client = await post("/mcp/oauth/register", JSON.stringify(metadata), { "content-type": "application/json" });
  assert.equal(client.status, 201);
  const verifier = randomBytes(32).toString("base64url");
  const state = randomBytes(9).toString("base64url");
  const query = new URLSearchParams({
    response_type: "code",
    client_id: client.body.client_id,
    redirect_uri: callback,
    scope: SCOPES,
    state,
    resource: `${GATEWAY}/mcp`,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
  });
  return { url: `${GATEWAY}/mcp/oauth/authorize?${query}`, state, verifier, client: client.body.client_id };
}

// The answer that the client has got since the last look: there must be one.
function landed(link) {
  assert.equal(answers.length, 1, `${answers.length} answers came`);
  const answer = answers.pop();
  assert.equal(answer.get("state"), link.state);
  assert.equal(answer.get("iss"), GATEWAY);
  return answer;
}

// Exchanges a code and lists the tools with the token.
async function useCode(link, code) {
  const form = new URLSearchParams({
    grant_type: "authorization_code",
    client_id: link.client,
    code,
    code_verifier: link.verifier,
    redirect_uri: callback,
    resource: `${GATEWAY}/mcp`,
  });
  const token = await post("/mcp/oauth/token", form);
  assert.equal(token.status, 200, JSON.stringify(token.body));
  const call = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
  const tools = await post("/mcp", call, {
    authorization: `Bearer ${token.body.access_token}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
  });
  assert.equal(tools.status, 200, JSON.stringify(tools.body));
  assert.ok(tools.body.result.tools.length > 0);
}

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });

// Runs `walk` in a browser of its own. Whatever the browser complains of, asks for elsewhere or has to show in a URL fails it.
async function visit(options, walk) {
  const context = await browser.newContext({ javaScriptEnabled: false, ...options });
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(GATEWAY) && !url.startsWith(callback)) problems.push(`a request to ${url}`);
    if (url.includes(API_KEY)) problems.push("the key stands in a URL");
  });
  try {
    await walk(page, context);
  } finally {
    await context.close();
  }
  // A refused key is a 403, which the browser reports as a failed resource; a favicon there is none.
  const unexpected = problems.filter((it) => !/favicon|status of 40[0-9]/.test(it));
  assert.deepEqual(unexpected, []);
}

const shot = (page, name) => page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
const key = (page) => page.getByLabel("Your API key");
const ended = (page) => page.getByRole("heading", { name: "This page has ended" });
const button = (page, name) => page.getByRole("button", { name, exact: true });

async function allow(page, text = API_KEY) {
  await key(page).fill(text);
  await button(page, "Allow").click();
}

// The contrast of each text to what is behind it, the width of the content, the sizes of what is pressed.
function measure() {
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = channels(color).map((it) => it / 255).map((it) => (it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let it = element; it; it = it.parentElement) {
      const color = getComputedStyle(it).backgroundColor;
      if ((channels(color)[3] ?? 1) === 1) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const contrast = (one, other) => {
    const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const texts = [...document.querySelectorAll("main *")].filter((element) =>
    [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()),
  );
  const faint = texts
    .map((element) => [element.textContent.slice(0, 40), contrast(getComputedStyle(element).color, ground(element))])
    .filter(([, ratio]) => ratio < 4.5);
  const placeholder = document.querySelector("input[placeholder]");
  const edge = placeholder && contrast(getComputedStyle(placeholder).borderTopColor, ground(placeholder.parentElement));
  const small = [...document.querySelectorAll("button, input:not([type=hidden])")]
    .map((element) => [element.textContent || element.id, element.getBoundingClientRect().height])
    .filter(([, height]) => height < 44);
  const { scrollWidth, clientWidth } = document.documentElement;
  return { faint, edge, small, overflow: scrollWidth - clientWidth, texts: texts.length };
}

const checks = {
  async allows_with_the_right_key() {
    const link = await asked();
    await visit({}, async (page) => {
      await page.goto(link.url);
      assert.equal(await page.title(), "Editor asks for access · Weirgate");
      const text = await page.locator("main").innerText();
      for (const part of ["nobody has checked it", new URL(callback).host, "weirgate mcp clients revoke", ...SCOPES.split(" ")])
        assert.ok(text.includes(part), `${part}: ${text}`);
      await shot(page, "asked");
      // By the keyboard alone, in the order of the page.
      const order = [];
      for (let step = 0; step < 3; step++) {
        await page.keyboard.press("Tab");
        order.push(await page.evaluate(() => document.activeElement.id || document.activeElement.value));
      }
      assert.deepEqual(order, ["key", "allow", "deny"]);
      await shot(page, "focused");
      await key(page).fill(API_KEY);
      await page.keyboard.press("Enter");
      await page.waitForURL(`${callback}**`);
    });
    await useCode(link, landed(link).get("code"));
  },

  async asks_again_after_a_wrong_key() {
    const link = await asked();
    await visit({}, async (page) => {
      await page.goto(link.url);
      await allow(page, "wg_wrong");
      const alert = page.getByRole("alert");
      await alert.waitFor();
      assert.equal(await key(page).inputValue(), "");
      assert.equal(await page.evaluate(() => document.activeElement.id), "key");
      const described = await key(page).getAttribute("aria-describedby");
      assert.ok(described.split(" ").includes(await alert.getAttribute("id")));
      await shot(page, "wrong-key");
      assert.equal(answers.length, 0);
      await allow(page);
      await page.waitForURL(`${callback}**`);
    });
    await useCode(link, landed(link).get("code"));
  },

  async tells_the_client_of_a_denial() {
    const link = await asked();
    await visit({}, async (page) => {
      await page.goto(link.url);
      // Without a key.
      await button(page, "Deny").click();
      await page.waitForURL(`${callback}**`);
    });
    const answer = landed(link);
    assert.equal(answer.get("error"), "access_denied");
    assert.equal(answer.get("code"), null);
  },

  async says_when_it_has_expired() {
    const [name, value] = OLD_COOKIE.split("=");
    for (const [number, request] of [OLD_REQUEST, "b2xk"].entries()) {
      const link = await asked();
      await visit({}, async (page, context) => {
        await context.addCookies([{ name, value, url: `${GATEWAY}/mcp/oauth/` }]);
        await page.goto(link.url);
        await page.evaluate((old) => (document.querySelector("[name=request]").value = old), request);
        await allow(page);
        await ended(page).waitFor();
        await shot(page, `expired-${number}`);
        assert.deepEqual((await page.evaluate(measure)).faint, []);
      });
      assert.equal(answers.length, 0);
    }
  },

  async belongs_to_its_browser() {
    const link = await asked();
    await visit({}, async (page, context) => {
      await page.goto(link.url);
      await context.clearCookies();
      await allow(page);
      await page.getByRole("heading", { name: "cannot be answered" }).waitFor();
      await shot(page, "foreign");
    });
    assert.equal(answers.length, 0);
  },

  async takes_two_clicks_as_one() {
    // The second click stops the navigation of the first, whose answer may be on its way.
    for (const delay of [0, 2, 5, 10, 20, 50]) {
      const link = await asked();
      await visit({}, async (page) => {
        await page.goto(link.url);
        await key(page).fill(API_KEY);
        await button(page, "Allow").scrollIntoViewIfNeeded();
        const { x, y, width, height } = await button(page, "Allow").boundingBox();
        const at = [x + width / 2, y + height / 2];
        await page.mouse.click(...at);
        await new Promise((passed) => setTimeout(passed, delay));
        await page.mouse.click(...at);
        await page.getByRole("heading", { name: "You may close this page." }).waitFor();
      });
      // Both navigations may have come to the client, but there is one code.
      assert.equal(new Set(answers.map((answer) => answer.get("code"))).size, 1);
      answers.length = 1;
      await useCode(link, landed(link).get("code"));
    }
  },

  async is_answered_once() {
    const link = await asked();
    await visit({}, async (page, context) => {
      await page.goto(link.url);
      await page.evaluate(() => (document.querySelector("form").target = "_blank"));
      const first = context.waitForEvent("page");
      await allow(page);
      await (await first).waitForURL(`${callback}**`);
      await useCode(link, landed(link).get("code"));
      const second = context.waitForEvent("page");
      await button(page, "Allow").click();
      await ended(await second).waitFor();
    });
    assert.equal(answers.length, 0);
  },

  async is_a_new_page_after_going_back() {
    const link = await asked();
    await visit({}, async (page) => {
      await page.goto(link.url);
      await allow(page);
      await page.waitForURL(`${callback}**`);
      const first = landed(link).get("code");
      await page.goBack();
      assert.equal(await key(page).inputValue(), "", "the key is still there");
      await allow(page);
      await page.waitForURL(`${callback}**`);
      assert.notEqual(first, answers[0].get("code"));
    });
    await useCode(link, landed(link).get("code"));
  },

  async is_readable_everywhere() {
    const names = ["Editor", "An editor with a name that is really rather long, as names of the marketing kind are", "W".repeat(120)];
    for (const [number, name] of names.entries()) {
      const link = await asked(name);
      for (const colorScheme of ["light", "dark"]) {
        for (const width of [320, 1280]) {
          const viewport = { width, height: 800 };
          await visit({ colorScheme, viewport }, async (page) => {
            await page.goto(link.url);
            await shot(page, `${colorScheme}-${width}-${number}`);
            const looks = await page.evaluate(measure);
            assert.ok(looks.texts > 12, `${looks.texts} texts`);
            assert.deepEqual({ ...looks, texts: 0, edge: 0 }, { faint: [], edge: 0, small: [], overflow: 0, texts: 0 });
            assert.ok(looks.edge >= 3, `the field's edge has a contrast of ${looks.edge}`);
            await allow(page, "wg_wrong");
            await page.getByRole("alert").waitFor();
            if (number === 0) await shot(page, `${colorScheme}-${width}-wrong`);
            assert.deepEqual((await page.evaluate(measure)).faint, []);
          });
        }
      }
    }
  },

  async stays_text_whatever_a_client_is_called() {
    const link = await asked(`"><img src=x onerror=alert(1)><script>alert(1)</script>`);
    // With scripts, so that one would run.
    await visit({ javaScriptEnabled: true }, async (page) => {
      page.on("dialog", () => assert.fail("a script ran"));
      await page.goto(link.url);
      assert.equal(await page.locator("img, script").count(), 0);
      assert.ok((await page.locator("h1").innerText()).startsWith(`"><img src=x onerror=alert(1)><script>`));
      await shot(page, "hostile");
    });
  },
};

// Each check begins without answers.
const fresh = ([name, check]) => [name, () => ((answers.length = 0), check())];
await main(Object.fromEntries(Object.entries(checks).map(fresh)));
await browser.close();
application.close();
