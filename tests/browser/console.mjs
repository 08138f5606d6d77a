// A person looks at every view of the console in Chromium: in the light and in the dark, on a narrow screen and a wide one.
// Whatever the navigation names is looked at, and the pages of PATHS.
//
// Environment: CONSOLE (its address, with a link that signs in), PATHS (more paths, one per line), FORMS (forms that are sent and
// shown again, one per line as JSON: the path of their page, the beginning of the path they are sent to, their fields, and the status
// of the answer), SERVER (as JSON: the process that
// may be killed, how to start it again, and a page to have open meanwhile), CHROMIUM (the program), SCREENSHOTS (a folder). Arguments: the checks to run; without any, all. Run it in the folder that holds node_modules. One line per
// check on stdout; exit 1 when one failed, 2 for an unknown name.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import { main } from "../clients/checks.mjs";

const require = createRequire(process.cwd() + "/");
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const { CONSOLE, PATHS = "", FORMS = "", SERVER, CHROMIUM, SCREENSHOTS } = process.env;
// A build for tests is slower than the one that is installed.
const SLOWNESS = Number(process.env.SLOWNESS || 1);
const origin = new URL(CONSOLE).origin;
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });

// Opens the console as a person who has signed in. What the browser complains of fails the check: a script that broke, or
// something that the Content-Security-Policy forbids.
async function visit(options, walk) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const complaints = [];
  const page = await context.newPage();
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" && !/status of 4(0[01349]|22)|ERR_CONNECTION|ERR_INCOMPLETE/.test(message.text())) complaints.push(message.text());
  });
  page.on("dialog", () => complaints.push("a script of a name ran"));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) complaints.push(`it asked ${request.url()}`);
  });
  try {
    await page.goto(CONSOLE);
    await walk(page, context);
    assert.deepEqual(complaints, []);
  } finally {
    await context.close();
  }
}

async function views(page) {
  const links = await page.locator("nav[aria-label=Views] a").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
  assert.ok(links.length > 1, `${links.length} views`);
  return [...links, ...PATHS.split("\n").filter(Boolean)];
}

// Opens the page of a form, and sends it as it would be without the checks of the browser.
async function send(page, { path, action, fields, status }) {
  await page.goto(origin + path);
  const form = page.locator(`form[action^="${action}"]`);
  const answer = page.waitForResponse((response) => response.request().method() === "POST");
  await form.evaluate((form, fields) => {
    for (const [name, value] of Object.entries(fields)) form.elements.namedItem(name).value = value;
    form.submit();
  }, fields);
  assert.equal((await answer).status(), status, action);
  await page.waitForLoadState("load");
}

// Looks at the page that is open, which has a name.
async function look(page, name, { colorScheme, width }) {
  await page.waitForTimeout(150);
  await shot(page, `console-${colorScheme}-${width}-${named(name)}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${name} is ${wide} pixels too wide at ${width}`);
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ").slice(0, 300)}`);
  assert.deepEqual(found, [], `${name}, ${colorScheme}, ${width}`);
}

const named = (path) => path.replace("/console", "view").replaceAll(/[^a-z0-9]+/gi, "-").slice(0, 100);
const shot = (page, name) => page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });

await main({
  async every_view_pleases_in_both_themes_and_widths() {
    for (const colorScheme of ["light", "dark"]) {
      for (const width of [320, 1280]) {
        await visit({ colorScheme, viewport: { width, height: 900 } }, async (page) => {
          for (const path of await views(page)) {
            await page.goto(origin + path);
            await look(page, path, { colorScheme, width });
          }
          for (const form of FORMS.split("\n").filter(Boolean).map(JSON.parse)) {
            await send(page, form);
            await look(page, `sent ${form.action} ${form.status}`, { colorScheme, width });
          }
        });
      }
    }
  },

  async every_view_is_reached_by_keyboard() {
    await visit({}, async (page) => {
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      assert.equal(await page.evaluate(() => document.activeElement.id), "main", "the skip link leads to the content");
      const links = await page.locator("nav[aria-label=Views] a").count();
      await page.goto(CONSOLE);
      for (let number = 0; number < 3; number++) await page.keyboard.press("Tab");
      for (let number = 0; number < links; number++) {
        const focused = await page.evaluate(() => document.activeElement.closest("nav")?.getAttribute("aria-label"));
        assert.equal(focused, "Views", `link ${number}`);
        await page.keyboard.press("Tab");
      }
    });
  },

  async an_open_page_outlives_the_process() {
    if (!SERVER) return;
    const { pid, program, args, cwd, path } = JSON.parse(SERVER);
    let next = null;
    try {
      await visit({}, async (page) => {
        await page.goto(origin + path);
        process.kill(pid, "SIGKILL");
        await page.locator("#connection", { hasText: "does not answer" }).waitFor({ timeout: 30000 });
        await shot(page, "console-lost");
        next = spawn(program, args, { cwd, stdio: "ignore" });
        await page.locator("#connection", { hasText: "Connected again" }).waitFor({ timeout: 60000 });
      });
    } finally {
      next?.kill("SIGKILL");
    }
  },

  async every_view_answers_in_time() {
    await visit({}, async (page) => {
      const shown = (await views(page)).filter((path) => path !== "/console/nothing");
      for (const path of shown) {
        const response = await page.goto(origin + path);
        assert.equal(response.status(), 200, path);
        const { responseStart, requestStart } = await page.evaluate(() => performance.getEntriesByType("navigation")[0].toJSON());
        const time = responseStart - requestStart;
        console.error(`${path}: ${time.toFixed(0)} ms`);
        assert.ok(time < 300 * SLOWNESS, `${path} took ${time} ms`);
      }
    });
  },
});
