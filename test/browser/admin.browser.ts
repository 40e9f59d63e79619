// The admin pages in Chromium: signing in with an extension that really signs, every action by its buttons, the log
// as it is written, a phone, the dark, and a browser without script. Pictures go to artifacts/.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
import type { SecretKey } from "../../src/nostr/keys.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { newKey, signed } from "../harness/operator-server.js";
import { until } from "../harness/sync-server.js";
import { checkInPage, focusInPage } from "./accessibility.js";
import { type AdminScene, setAdminScene } from "./admin-scene.js";
import { type Browser, openBrowser } from "./chromium.js";

const pictures = "artifacts";
const phone = { width: 320, height: 640 };
const desk = { width: 1200, height: 800 };
const withinMs = 120_000;

/** An extension as NIP-07 describes it; the key stays outside of the page. */
async function installExtension(context: BrowserContext, key: () => SecretKey): Promise<void> {
  interface Draft {
    readonly kind: number;
    readonly created_at: number;
    readonly tags: readonly (readonly string[])[];
    readonly content: string;
  }
  await context.exposeFunction("signOutsideThePage", (draft: Draft) => {
    const { raw } = signed(key(), draft.kind, draft.tags, draft.content, draft.created_at);
    return JSON.parse(raw) as object;
  });
  await context.addInitScript(() => {
    const page = globalThis as unknown as Record<string, unknown>;
    page.nostr = { signEvent: page.signOutsideThePage };
  });
}

describe("the admin pages in a browser", { timeout: 240_000 }, () => {
  let scene: AdminScene;
  let browser: Browser;
  let signer: SecretKey;
  let pages: [string, string][];

  before(async () => {
    await mkdir(pictures, { recursive: true });
    scene = await setAdminScene();
    browser = await openBrowser();
    signer = scene.server.admin;
    await installExtension(browser.context, () => signer);
    const { served, waiting } = scene;
    pages = [
      ["overview", "/admin"],
      ["purgatory", "/admin/purgatory"],
      ["relays", "/admin/relays"],
      ["repositories", "/admin/repositories"],
      ["repository", `/admin/repository?name=${encodeURIComponent(served)}`],
      ["bans", "/admin/bans"],
      ["tokens", "/admin/tokens"],
      ["decisions", `/admin/decisions?subject=${waiting.id}`],
      ["refused", "/admin/decisions"],
      ["audit", "/admin/audit"],
      ["log", "/admin/log"],
    ];
  });

  after(async () => {
    await browser?.close();
    await scene?.close();
  });

  async function open(path: string, size = desk, dark = false, from = browser): Promise<Page> {
    const page = await from.context.newPage();
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
    await page.goto(scene.server.httpUrl + path);
    return page;
  }

  const looks = [
    ["light", desk, false],
    ["dark", desk, true],
    ["phone", phone, false],
    ["phone-dark", phone, true],
  ] as const;

  const said = (page: Page, text: RegExp): Promise<void> =>
    page.locator(".said").filter({ hasText: text }).waitFor({ timeout: withinMs });

  test("who is not logged in is told what to do", async () => {
    for (const [look, size, dark] of looks) {
      const page = await open("/admin/relays", size, dark);
      await page.getByRole("button", { name: "Sign in with Nostr" }).waitFor();
      assert.deepEqual(await page.evaluate(checkInPage), [], look);
      await page.screenshot({ path: `${pictures}/admin-login-${look}.png`, fullPage: true });
      await page.close();
    }
  });

  test("who has no extension is told so, and what to do", async () => {
    const bare = await openBrowser();
    try {
      const page = await open("/admin", desk, false, bare);
      await page.getByText(/No extension for Nostr \(NIP-07\) was found in this browser: install one/).waitFor();
      await page.getByRole("button", { name: "Sign in with Nostr" }).click();
      await page.getByText(/No extension for Nostr/).waitFor();
    } finally {
      await bare.close();
    }
  });

  test("a stranger's extension is not let in; an admin's is, and stays on the page he asked for", async () => {
    signer = newKey();
    const page = await open("/admin/relays");
    await page.getByRole("button", { name: "Sign in with Nostr" }).click();
    await page.getByText("Not let in: this key is not an admin's.").waitFor();
    signer = scene.server.admin;
    await page.getByRole("button", { name: "Sign in with Nostr" }).click();
    await page.getByRole("heading", { level: 1, name: "Relays" }).waitFor();
    const [cookie] = await browser.context.cookies();
    assert.deepEqual([cookie?.httpOnly, cookie?.sameSite], [true, "Strict"]);
    assert.equal(await page.evaluate("document.cookie"), "");
    await page.close();
  });

  for (const [look, size, dark] of looks) {
    test(`every page can be read and used by everybody: ${look}`, async () => {
      for (const [name, path] of pages) {
        const page = await open(path, size, dark);
        assert.deepEqual(await page.evaluate(checkInPage), [], `${name} in ${look}`);
        for (const fold of await page.locator("details.fold").all())
          await fold.evaluate((one) => one.setAttribute("open", ""));
        assert.deepEqual(await page.evaluate(checkInPage), [], `${name} in ${look}, unfolded`);
        for (const fold of await page.locator("details.fold").all())
          await fold.evaluate((one) => one.removeAttribute("open"));
        await page.screenshot({ path: `${pictures}/admin-${name}-${look}.png`, fullPage: true });
        await page.close();
      }
    });
  }

  test("nothing on these pages is kept from running by their own policy, and nothing comes from elsewhere", async () => {
    const page = await browser.context.newPage();
    const complaints: string[] = [];
    page.on("console", (message) => complaints.push(message.text()));
    page.on("request", (request) => {
      if (!request.url().startsWith(scene.server.httpUrl)) complaints.push(request.url());
    });
    for (const [, path] of pages) await page.goto(scene.server.httpUrl + path);
    assert.deepEqual(complaints, []);
    await page.close();
  });

  test("the focus is seen at every stop of the keyboard", async () => {
    const page = await open("/admin/relays");
    const stops = new Set<string>();
    for (let press = 0; press < 30; press++) {
      await page.keyboard.press("Tab");
      const { stop, isVisible } = await page.evaluate(focusInPage);
      if (stop.startsWith("BODY")) break;
      assert.ok(isVisible, `the focus is not seen at ${stop}`);
      stops.add(stop);
    }
    assert.ok(stops.size > 12, `only ${stops.size} stops`);
    await page.close();
  });

  test("a relay is reconnected, left alone and followed again", async () => {
    const { relay } = scene;
    const page = await open("/admin/relays");
    const connections = relay.connections;
    await page.getByRole("button", { name: `Reconnect now: ${relay.url}` }).click();
    await said(page, /is dialled now/);
    await until("it was dialled", () => relay.connections > connections, withinMs);
    const card = page.locator(".cards > li").filter({ hasText: relay.key });
    await card.getByText("Ignore…").click();
    await card.getByLabel("Reason").fill("too loud");
    await card.getByRole("button", { name: /^Ignore this relay/ }).click();
    await said(page, /is left alone/);
    await until("it is closed", () => relay.openConnections === 0, withinMs);
    await page.getByRole("cell", { name: "too loud" }).waitFor();
    await page.getByRole("button", { name: `Follow again: ${relay.key}` }).click();
    await said(page, /is followed again/);
    await until("it is back", () => relay.openConnections === 1, withinMs);
    await page.close();
  });

  test("git servers are asked again and a waiting event is deleted", async () => {
    const page = await open("/admin/purgatory");
    const card = page.locator(".cards > li").filter({ hasText: scene.waiting.missing.slice(0, 8) });
    await card.getByRole("button", { name: /^Ask again now/ }).click();
    await said(page, /are asked again/);
    await card.getByText("Delete…").click();
    await card.getByRole("button", { name: /^Delete this event/ }).click();
    await said(page, /waits no more/);
    assert.equal(await card.count(), 0);
    await page.close();
  });

  test("a repository is checked, tidied, un-hosted and restored", async () => {
    const { server, served, owner } = scene;
    const page = await open("/admin/repositories");
    await page.getByRole("link", { name: "tidewater" }).click();
    await page.getByRole("button", { name: "Check (fsck)" }).click();
    await said(page, /is sound/);
    await page.getByRole("button", { name: "Tidy up (gc)" }).click();
    await said(page, /Tidied/);
    await page.getByText("Un-host…").click();
    await page.getByLabel("Reason").first().fill("for a while");
    await page.getByRole("button", { name: "Un-host this repository" }).click();
    await said(page, /is served no more/);
    assert.equal((await fetch(server.repositoryUrl(owner, "tidewater"))).status, 404);
    await page.getByRole("button", { name: "Restore" }).click();
    await said(page, /is served again/);
    assert.equal((await fetch(server.repositoryUrl(owner, "tidewater"))).status, 200);
    assert.ok(served.endsWith("/tidewater"));
    await page.close();
  });

  test("a key is banned and the ban is lifted; the audit names the admin", async () => {
    const target = npubOf(newKey().pubkey);
    const page = await open("/admin/bans");
    await page.getByLabel("What").selectOption("key");
    await page.getByLabel("Target").fill(target);
    await page.locator("#ban-reason").fill("browser test");
    await page.getByRole("button", { name: "Ban", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "Ban?" }).waitFor();
    await page.getByRole("link", { name: "No, go back" }).click();
    await page.getByRole("heading", { level: 1, name: "Bans and lists" }).waitFor();
    assert.doesNotMatch((await page.locator("main").textContent()) ?? "", new RegExp(target), "nothing was done");
    await page.getByLabel("What").selectOption("key");
    await page.getByLabel("Target").fill(target);
    await page.locator("#ban-reason").fill("browser test");
    await page.getByRole("button", { name: "Ban", exact: true }).click();
    await page.getByRole("button", { name: "Yes, ban" }).click();
    await said(page, /is banned/);
    await page.getByRole("button", { name: `Lift: ${target}` }).click();
    await page.getByRole("button", { name: "Yes, lift the ban" }).click();
    await said(page, /is lifted/);
    await page.getByRole("link", { name: "Audit" }).click();
    const row = page.getByRole("row").filter({ hasText: "browser test" });
    assert.match((await row.textContent()) ?? "", new RegExp(npubOf(scene.server.admin.pubkey).slice(0, 12)));
    await page.close();
  });

  test("a ban shows the repositories that would go, to everybody's eyes; what it removed comes back when it is lifted", async () => {
    const target = npubOf(scene.owner.pubkey);
    const ask = async (size: typeof desk, dark: boolean): Promise<Page> => {
      const page = await open("/admin/bans", size, dark);
      await page.getByLabel("Target").fill(target);
      await page.getByRole("button", { name: "Ban", exact: true }).click();
      await page.getByText("These repositories would not be served any more:").waitFor();
      await page.getByText(`${target}/tidewater`).waitFor();
      return page;
    };
    for (const [look, size, dark] of looks) {
      const page = await ask(size, dark);
      assert.deepEqual(await page.evaluate(checkInPage), [], look);
      await page.screenshot({ path: `${pictures}/admin-ban-${look}.png`, fullPage: true });
      await page.close();
    }
    const page = await ask(desk, false);
    await page.getByRole("button", { name: "Yes, ban" }).click();
    await said(page, /events were removed/);
    const url = scene.server.repositoryUrl(scene.owner, "tidewater");
    assert.equal((await fetch(url)).status, 404);
    await page.getByRole("button", { name: `Lift: ${target}` }).click();
    await page.getByLabel("Bring back what the ban removed").waitFor();
    await page.screenshot({ path: `${pictures}/admin-lift-light.png`, fullPage: true });
    await page.getByRole("button", { name: "Yes, lift the ban" }).click();
    await said(page, /and 2 repositories came back/);
    assert.equal((await fetch(url)).status, 200);
    await page.close();
  });

  test("the overview draws what this hour brought, and says it in words", async () => {
    const page = await open("/admin");
    const pictures = page.locator("#overview .chart svg");
    assert.equal(await pictures.count(), 10);
    assert.match(
      (await pictures.first().getAttribute("aria-label")) ?? "",
      /^Events stored, last day: [1-9]\d* in all/,
    );
    await page.getByRole("img", { name: /^Pushes, last month: [1-9]\d* in all/ }).waitFor();
    const box = await pictures.first().boundingBox();
    assert.ok(box && box.width > 100 && box.height > 30, JSON.stringify(box));
    await page.close();
  });

  test("why: a question and its answer", async () => {
    const page = await open("/admin/decisions");
    await page.getByLabel("Event or repository").fill(scene.served);
    await page.getByRole("button", { name: "Why?" }).click();
    await page.getByText(/It is served since/).waitFor();
    await page.getByLabel("Event or repository").fill("nonsense");
    await page.getByRole("button", { name: "Why?" }).click();
    await page.getByText(/is neither an event id/).waitFor();
    await page.close();
  });

  test("a new line of the log appears by itself", async () => {
    const page = await open("/admin/log");
    await page.getByText("Live: new lines appear by themselves.").waitFor({ timeout: withinMs });
    const lines = page.locator("#log li").filter({ hasText: "connected to a relay" });
    const before = await lines.count();
    await scene.server.operate("relays.reconnect", { relay: scene.relay.url });
    await lines.nth(before).waitFor({ timeout: withinMs });
    await page.close();
  });

  test("logging out shows the login page", async () => {
    const page = await open("/admin");
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByRole("heading", { level: 1, name: "Log in" }).waitFor();
    assert.deepEqual(await browser.context.cookies(), []);
    await page.close();
  });

  test("without script: in by a link, an action, out again", async () => {
    const plain = await openBrowser({ javaScriptEnabled: false });
    try {
      const page = await open("/admin", phone, false, plain);
      assert.equal(await page.getByRole("button").count(), 0);
      await page.screenshot({ path: `${pictures}/admin-login-without-script.png`, fullPage: true });
      await page.goto(await scene.newLink());
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
      for (const [name, path] of pages) {
        await page.goto(scene.server.httpUrl + path);
        await page.screenshot({ path: `${pictures}/admin-${name}-without-script.png`, fullPage: true });
      }
      await page.goto(`${scene.server.httpUrl}/admin/bans`);
      await page.getByLabel("What").selectOption("ip");
      await page.getByLabel("Target").fill("198.51.100.0/24");
      await page.getByRole("button", { name: "Ban", exact: true }).click();
      await page.getByRole("button", { name: "Yes, ban" }).click();
      await said(page, /198\.51\.100\.0\/24 is banned/);
      await page.getByRole("button", { name: "Lift: 198.51.100.0/24" }).click();
      await page.getByRole("button", { name: "Yes, lift the ban" }).click();
      await said(page, /is lifted/);
      await page.getByRole("button", { name: "Log out" }).click();
      await page.getByRole("heading", { level: 1, name: "Log in" }).waitFor();
    } finally {
      await plain.close();
    }
  });
});
