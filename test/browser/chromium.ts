// Debian's Chromium, headless, with nothing that reaches for the network by itself.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium, type Page } from "playwright-core";

const quiet = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export interface Browser {
  readonly context: BrowserContext;
  close(): Promise<void>;
}

export async function openBrowser(
  options: Parameters<typeof chromium.launchPersistentContext>[1] = {},
): Promise<Browser> {
  const profile = await mkdtemp(join(tmpdir(), "holdfast-chromium-"));
  const executablePath = process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";
  const context = await chromium.launchPersistentContext(profile, {
    headless: true,
    executablePath,
    args: quiet,
    ...options,
  });
  return {
    context,
    async close() {
      await context.close();
      await rm(profile, { recursive: true, force: true });
    },
  };
}

/** A page as somebody sees it who has a window of this size and likes it light or dark. */
export async function openPage(
  { context }: Browser,
  url: string,
  { size, dark = false }: { readonly size: { width: number; height: number }; readonly dark?: boolean },
): Promise<Page> {
  const page = await context.newPage();
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
  await page.goto(url);
  return page;
}
