// The pages as readers see them, in Chromium: in light and dark, on a phone, without script; checked for what people
// with a keyboard, a screen reader or poor sight need. Pictures of all of them go to artifacts/.
// Run: CHROMIUM_PATH=/usr/bin/chromium node --test dist/test/browser/pages.browser.js

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";
import { checkInPage, focusInPage } from "./accessibility.js";
import { type Browser, openBrowser, openPage } from "./chromium.js";
import { hostileName, type Scene, setScene } from "./pages-scene.js";
import { serveStatus } from "./status-scene.js";

const pictures = "artifacts";
const phone = { width: 320, height: 640 };
const desk = { width: 1200, height: 800 };

describe("the pages in a browser", { timeout: 180_000 }, () => {
  let scene: Scene;
  let browser: Browser;
  let plainBrowser: Browser;
  let statusServer: Awaited<ReturnType<typeof serveStatus>>;
  let urls: [string, string][];

  before(async () => {
    await mkdir(pictures, { recursive: true });
    scene = await setScene();
    browser = await openBrowser();
    plainBrowser = await openBrowser({ javaScriptEnabled: false });
    const { origin } = scene.world;
    statusServer = await serveStatus();
    urls = [
      ["landing", `${origin}/`],
      ["search", `${origin}/?q=tide`],
      ["repository", scene.full],
      ["hostile", scene.hostile],
      ["waiting", scene.waiting],
      ["prs", scene.prs],
      ["prs-empty", scene.prs.replace("tidewater", "nothing")],
      ["missing", scene.full.replace("tidewater", "nothing")],
      ["status", `${origin}/status`],
      ["status-relays", statusServer.url],
    ];
  });

  after(async () => {
    await browser.close();
    await plainBrowser.close();
    await statusServer.close();
    await scene.world.close();
  });

  const open = (
    url: string,
    { from = browser, ...look }: { dark?: boolean; size?: typeof desk; from?: Browser } = {},
  ): Promise<Page> => openPage(from, url, { size: desk, ...look });

  for (const [look, options] of [
    ["light", {}],
    ["dark", { dark: true }],
    ["phone", { size: phone }],
    ["phone-dark", { size: phone, dark: true }],
  ] as const) {
    test(`every page can be read and used by everybody: ${look}`, async () => {
      for (const [name, url] of urls) {
        const page = await open(url, options);
        assert.deepEqual(await page.evaluate(checkInPage), [], `${name} in ${look}`);
        await page.screenshot({ path: `${pictures}/${name}-${look}.png`, fullPage: true });
        await page.close();
      }
    });
  }

  test("the checks find what is wrong with a page", async () => {
    const page = await open("about:blank");
    await page.setContent(
      `<title></title><h1>One</h1><h3>Three</h3><input id="q"><a href="/"></a><img src="data:,"><p style="color:#999;background:#fff">pale</p><pre style="width:9px;overflow:auto">long long</pre><p style="width:3000px">wide</p>`,
    );
    const found = (await page.evaluate(checkInPage)).join("\n");
    for (const part of [
      "language",
      "title",
      "main",
      "heading level 3",
      "label",
      "without a name",
      "picture",
      "contrast",
      "inline",
      "keyboard",
      "wide in",
    ]) {
      assert.ok(found.includes(part), `${part} was not found in: ${found}`);
    }
    await page.close();
  });

  test("without script every page is complete", async () => {
    for (const [name, url] of urls) {
      const page = await open(url, { from: plainBrowser });
      assert.equal(await page.locator("button:not([type=submit])").count(), 0, name);
      await page.screenshot({ path: `${pictures}/${name}-without-script.png`, fullPage: true });
      await page.close();
    }
    const page = await open(`${scene.world.origin}/`, { from: plainBrowser });
    await page.getByLabel("Search repositories").fill("harmonic");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByRole("link", { name: "Tidewater" }).click();
    assert.equal(await page.locator("h1").textContent(), "Tidewater");
    await page.close();
  });

  test("the focus is seen at every stop of the keyboard", async () => {
    const page = await open(scene.full);
    const stops = new Set<string>();
    for (let press = 0; press < 25; press++) {
      await page.keyboard.press("Tab");
      const { stop, isVisible } = await page.evaluate(focusInPage);
      // Past the last one.
      if (stop.startsWith("BODY")) break;
      assert.ok(isVisible, `the focus is not seen at ${stop}`);
      stops.add(stop);
    }
    assert.ok(stops.size > 10, `only ${stops.size} stops`);
    await page.close();
  });

  test("threat 14: what strangers write neither runs nor asks other servers", async () => {
    const page = await browser.context.newPage();
    const asked: string[] = [];
    const complaints: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    page.on("console", (message) => complaints.push(message.text()));
    await page.goto(scene.hostile);
    await page.getByText("click").first().waitFor();
    assert.notEqual(await page.title(), "owned");
    assert.equal(await page.locator("h1").textContent(), hostileName);
    assert.equal(
      await page.locator("main script, main img:not([src^='/']), main svg, a[href^='javascript']").count(),
      0,
    );
    await page.goto(scene.full);
    await page.getByText("principal lunar").waitFor();
    assert.deepEqual(
      asked.filter((url) => !url.startsWith(scene.world.origin)),
      [],
    );
    assert.deepEqual(
      complaints.filter((text) => /Content Security Policy/i.test(text)),
      [],
    );
    await page.close();
  });

  test("a copy button copies its line", async () => {
    await browser.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: scene.world.origin });
    const page = await open(scene.full);
    await page.locator("details.clone > summary").click();
    await page.getByRole("button", { name: "Copy: Clone with git", exact: true }).click();
    await page.getByText("Copied", { exact: true }).waitFor();
    const read = "navigator.clipboard.readText()";
    assert.equal(await page.evaluate(read), `git clone ${scene.full}`);
    await page.close();
  });

  test("what happens on the relay appears on an open page", async () => {
    const page = await browser.context.newPage();
    const subject = `Live issue ${Date.now()}`;
    const isListening = new Promise<void>((resolve) => {
      page.on("websocket", (socket) =>
        socket.on("framereceived", ({ payload }) => String(payload).startsWith('["EOSE"') && resolve()),
      );
    });
    await page.goto(`${scene.world.origin}/`);
    await isListening;
    await scene.world.publish(
      scene.owner,
      1621,
      [
        ["a", `30617:${scene.owner.pubkey}:tidewater`],
        ["subject", subject],
      ],
      "now",
    );
    await page.getByText(subject).waitFor({ timeout: 15_000 });
    await page.close();
  });
});
