// The front page, people, issues and pull requests as readers see them, in Chromium: at 1280 and 360 pixels, in light and
// dark, by keyboard, without script; pages that renew themselves; and writing with an extension (NIP-07), which is faked here.
// Pictures of all of them go to artifacts/.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";
import type { Tag } from "../../src/nostr/event.js";
import { type SecretKey, signEvent } from "../../src/nostr/keys.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { newKey } from "../http/pages-world.js";
import { checkInPage, focusInPage } from "./accessibility.js";
import { type Browser, openBrowser, openPage } from "./chromium.js";
import { type Scene, setScene } from "./pages-scene.js";

const pictures = "artifacts";
const [desk, phone] = [
  { width: 1280, height: 900 },
  { width: 360, height: 740 },
];

interface Draft {
  readonly kind: number;
  readonly created_at: number;
  readonly tags: readonly Tag[];
  readonly content: string;
}

/** What an extension puts into pages. */
const extension = `window.nostr = {
  getPublicKey: () => window.keyOfTest(),
  signEvent: async (draft) => {
    const answer = await window.signForTest(draft);
    if (answer === null) throw new Error("the user said no");
    return answer;
  },
}`;

describe("people and talk in a browser", { timeout: 300_000 }, () => {
  let scene: Scene;
  let browser: Browser;
  let plainBrowser: Browser;
  let signing: Browser;
  let signer: SecretKey | undefined;
  let urls: [string, string][];

  before(async () => {
    await mkdir(pictures, { recursive: true });
    scene = await setScene();
    browser = await openBrowser();
    plainBrowser = await openBrowser({ javaScriptEnabled: false });
    signing = await openBrowser();
    await signing.context.exposeFunction("keyOfTest", () => signer?.pubkey);
    await signing.context.exposeFunction("signForTest", ({ kind, created_at, tags, content }: Draft) =>
      signer ? JSON.parse(signEvent(signer, { kind, created_at, tags, content }, randomBytes).raw) : null,
    );
    await signing.context.addInitScript(extension);
    const { origin } = scene.world;
    urls = [
      ["front", `${origin}/`],
      ["front-by-name", `${origin}/?sort=name`],
      ["front-topic", `${origin}/?topic=tides`],
      ["found", `${origin}/?q=tide`],
      ["person", `${origin}/${npubOf(scene.owner.pubkey)}`],
      ["person-unknown", `${origin}/${npubOf(newKey().pubkey)}`],
      ["code", scene.full],
      ["issues", `${scene.full}/issues`],
      ["issues-closed", `${scene.full}/issues?state=closed`],
      ["issue", scene.issue],
      ["issue-hostile", scene.hostileIssue],
      ["pulls", `${scene.full}/pulls`],
      ["pull", scene.pull],
      ["pull-commits", `${scene.pull}/commits`],
      ["pull-files", `${scene.pull}/files`],
      ["patch", scene.patch],
      ["patch-commits", `${scene.patch}/commits`],
      ["patch-files", `${scene.patch}/files`],
      ["copies", `${scene.full}/copies`],
    ];
  });

  after(async () => {
    await browser?.close();
    await plainBrowser?.close();
    await signing?.close();
    await scene?.world.close();
  });

  const open = (
    url: string,
    { from = browser, ...look }: { dark?: boolean; size?: typeof desk; from?: Browser } = {},
  ): Promise<Page> => openPage(from, url, { size: desk, ...look });

  for (const [look, options] of [
    ["1280-light", { size: desk }],
    ["1280-dark", { size: desk, dark: true }],
    ["360-light", { size: phone }],
    ["360-dark", { size: phone, dark: true }],
  ] as const) {
    test(`the front page, people, issues and pull requests can be read and used by everybody: ${look}`, async () => {
      const wrong: Record<string, string[]> = {};
      for (const [name, url] of urls) {
        const page = await open(url, options);
        const found = await page.evaluate(checkInPage);
        if (found.length > 0) wrong[name] = found;
        await page.screenshot({ path: `${pictures}/talk-${name}-${look}.png`, fullPage: true });
        await page.close();
      }
      assert.deepEqual(wrong, {});
    });
  }

  test("pages are light: below 60 kB each, style and script included", async () => {
    const weights: string[] = [];
    for (const [name, url] of urls) {
      const text = await (await fetch(url, { headers: { Accept: "text/html" } })).text();
      let bytes = Buffer.byteLength(text);
      for (const [, asset = ""] of text.matchAll(/(?:href|src)="(\/assets\/[^"]+\.(?:css|js)[^"]*)"/g)) {
        bytes += (await (await fetch(scene.world.origin + asset)).arrayBuffer()).byteLength;
      }
      weights.push(
        `${name} ${(bytes / 1000).toFixed(1)} kB, of which ${(Buffer.byteLength(text) / 1000).toFixed(1)} the page itself`,
      );
      assert.ok(bytes < 60_000, weights.at(-1));
    }
    console.log(weights.join("\n"));
  });

  test("without script pages are complete and offer clients that can write", async () => {
    for (const [name, url] of urls) {
      const page = await open(url, { from: plainBrowser });
      assert.equal(await page.locator("button:not([type=submit])").count(), 0, name);
      assert.equal(
        await page
          .locator("form.write")
          .isVisible()
          .catch(() => false),
        false,
        name,
      );
      await page.close();
    }
    const page = await open(`${scene.full}/issues`, { from: plainBrowser });
    await page.getByText("New issue").waitFor();
    assert.ok(await page.getByRole("link", { name: "open one in gitworkshop" }).isVisible());
    await page.getByLabel("Search in titles").fill("reykja");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByRole("link", { name: /Wrong by an hour/ }).click();
    assert.match((await page.locator("h2#title").textContent()) ?? "", /Wrong by an hour/);
    assert.ok(await page.getByText("Iceland has no summer time.").isVisible());
    assert.ok(await page.getByRole("link", { name: "answer in gitworkshop" }).isVisible());
    await page.close();
  });

  test("everything is reached by keyboard, and the focus is seen at every stop", async () => {
    for (const url of [`${scene.world.origin}/`, `${scene.full}/issues`, scene.issue, `${scene.pull}/files`]) {
      const page = await open(url);
      const stops = new Set<string>();
      for (let press = 0; press < 80; press++) {
        await page.keyboard.press("Tab");
        const { stop, isVisible } = await page.evaluate(focusInPage);
        // Past the last one.
        if (stop.startsWith("BODY")) break;
        assert.ok(isVisible, `the focus is not seen at ${stop} of ${url}`);
        stops.add(stop);
      }
      assert.ok(stops.size > 10, `only ${stops.size} stops on ${url}`);
      await page.close();
    }
    // From the front page to the changes of a pull request with Enter alone.
    const page = await open(`${scene.world.origin}/`);
    for (const [name, url] of [
      ["Tidewater", scene.full],
      ["Pull requests", `${scene.full}/pulls`],
      ["Iceland has no summer time", scene.pull],
      ["Files changed", `${scene.pull}/files`],
    ] as const) {
      const link = page.getByRole("link", { name: new RegExp(`^${name}`) }).first();
      await link.focus();
      await page.keyboard.press("Enter");
      await page.waitForURL(url);
    }
    assert.ok(await page.getByText("src/iceland.ts").first().isVisible());
    await page.close();
  });

  test("threat 14: what strangers write in issues and profiles neither runs nor asks other servers", async () => {
    const page = await browser.context.newPage();
    const asked: string[] = [];
    const complaints: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    page.on("console", (message) => complaints.push(message.text()));
    for (const url of [scene.hostileIssue, `${scene.full}/issues`]) {
      await page.goto(url);
      await page.locator("main").waitFor();
      assert.notEqual(await page.title(), "owned");
      assert.equal(
        await page
          .locator("main script, main img:not([src^='/']), a[href^='javascript'], main [onload], main [onerror]")
          .count(),
        0,
      );
    }
    await page.locator("a[title^=npub]").first().click();
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

  /** Opens a page and waits until it hears of what happens. */
  async function openLive(url: string): Promise<Page> {
    const page = await browser.context.newPage();
    const isListening = new Promise<void>((resolve) => {
      page.on("websocket", (socket) =>
        socket.on("framereceived", ({ payload }) => String(payload).startsWith('["EOSE"') && resolve()),
      );
    });
    await page.goto(url);
    await isListening;
    return page;
  }

  test("a push, a comment and numbers appear on open pages by themselves", async () => {
    const about: Tag = ["a", `30617:${scene.owner.pubkey}:tidewater`];
    const [code, log, issue, list] = [
      await openLive(scene.full),
      await openLive(`${scene.full}/commits/main`),
      await openLive(scene.issue),
      await openLive(`${scene.full}/issues`),
    ];
    const open = Number(await code.locator("nav.tabs a", { hasText: "Issues" }).locator(".number").textContent());
    const message = `Pushed while you look ${Date.now()}`;
    await scene.push(message);
    await code.getByText(message).first().waitFor({ timeout: 20_000 });
    await log.getByText(message).first().waitFor({ timeout: 20_000 });
    const id = scene.issue.split("/").at(-1) ?? "";
    await scene.world.publish(
      scene.reader,
      1111,
      [
        ["E", id],
        ["K", "1621"],
        ["e", id],
        ["k", "1621"],
      ],
      "Said just now",
    );
    await issue.getByText("Said just now").waitFor({ timeout: 20_000 });
    await scene.world.publish(scene.reader, 1621, [about, ["subject", "New while you look"]], "");
    await list.getByText("New while you look").waitFor({ timeout: 20_000 });
    for (const page of [code, list, log]) {
      await page
        .locator("nav.tabs a", { hasText: "Issues" })
        .locator(".number", { hasText: String(open + 1) })
        .waitFor({ timeout: 20_000 });
    }
    for (const page of [code, log, issue, list]) await page.close();
  });

  test("with an extension a comment, an issue and a status are written on the page, signed and sent as events", async () => {
    signer = newKey();
    const page = await open(`${scene.full}/issues`, { from: signing });
    await page.getByLabel("Title", { exact: true }).fill("Written <on> the page");
    await page.getByLabel("Text, in Markdown").fill("With *an* extension.");
    assert.equal(await page.getByRole("link", { name: "open one in gitworkshop" }).isVisible(), false);
    assert.deepEqual(await page.evaluate(checkInPage), []);
    await page.screenshot({ path: `${pictures}/talk-write-issue-1280-light.png`, fullPage: true });
    await page.getByRole("button", { name: "Publish the issue" }).click();
    await page.waitForURL(/\/issues\/[0-9a-f]{64}$/);
    assert.equal(await page.locator("h2#title").textContent(), "Written <on> the page");
    await page.locator("em", { hasText: "an" }).waitFor();
    await page.getByLabel("Your comment").fill("First!");
    await page.getByRole("button", { name: "Comment" }).click();
    await page.locator("article.comment", { hasText: "First!" }).waitFor({ timeout: 20_000 });
    assert.equal(await page.getByLabel("Your comment").inputValue(), "");
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: "Open again" }).waitFor({ timeout: 20_000 });
    await page.locator("#state .tag", { hasText: "closed" }).waitFor();
    await page.screenshot({ path: `${pictures}/talk-write-comment-1280-light.png`, fullPage: true });
    const url = page.url();

    // A stranger's word would not count: the page says so before anything is signed.
    signer = newKey();
    await page.getByRole("button", { name: "Open again" }).click();
    await page.getByText("Only its author and the maintainers may do that").waitFor();
    // Who says no to the extension is told what happened.
    signer = scene.owner;
    await page.getByLabel("Your comment").fill("Never sent");
    const author = signer;
    signer = undefined;
    await page.getByRole("button", { name: "Comment" }).click();
    await page.getByText("Not published: the user said no.").waitFor();
    assert.equal(await page.getByLabel("Your comment").inputValue(), "Never sent");
    // A maintainer opens it again.
    signer = author;
    await page.getByRole("button", { name: "Open again" }).click();
    await page.getByRole("button", { name: "Close" }).waitFor({ timeout: 20_000 });
    assert.match(await (await fetch(url)).text(), /opened it again/);
    await page.close();
  });

  test("a status written on a page counts although the one before is of the same second, or of a clock that is ahead", async () => {
    signer = newKey();
    const author = signer;
    const about: Tag = ["a", `30617:${scene.owner.pubkey}:tidewater`];
    const issue = await scene.world.publish(author, 1621, [about, ["subject", "Closed and opened"]], "");
    const url = `${scene.full}/issues/${issue.id}`;
    const page = await signing.context.newPage();
    // All of it happens within one second of the reader's clock.
    await page.clock.setFixedTime(new Date());
    await page.goto(url);
    for (let turn = 0; turn < 3; turn++) {
      await page.getByRole("button", { name: "Close" }).click();
      await page.locator("#state .tag", { hasText: "closed" }).waitFor();
      await page.getByRole("button", { name: "Open again" }).click();
      await page.locator("#state .tag", { hasText: "open" }).waitFor();
    }
    // Somebody whose clock is ahead closes it: state and buttons of the open page follow, and its reader may answer that.
    await scene.world.publish(scene.owner, 1632, [["e", issue.id, "", "root"], about], "", -300);
    await page.locator("#state .tag", { hasText: "closed" }).waitFor({ timeout: 20_000 });
    await page.getByRole("button", { name: "Open again" }).click();
    await page.getByRole("button", { name: "Resolve" }).waitFor();
    await page.locator("#state .tag", { hasText: "open" }).waitFor();
    await page.close();
  });

  test("a page without an extension shows no form", async () => {
    const page = await browser.context.newPage();
    await page.clock.install();
    await page.goto(scene.issue);
    await page.getByRole("link", { name: "answer in gitworkshop" }).waitFor();
    // Longer than an extension may take.
    await page.clock.fastForward(5_000);
    assert.equal(await page.locator("form.write").isVisible(), false);
    await page.close();
  });
});
