// Debian's Chromium, headless, with nothing that reaches for the network by itself.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium } from "playwright-core";

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
