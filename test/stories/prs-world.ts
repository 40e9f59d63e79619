// What contributors do under /prs/ (GRASP-06), in the words of a story, and what is on disk there.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { runProgram } from "../harness/git-server.js";
import type { Person, SignedEvent } from "../harness/grasp-people.js";
import { Story, type WorkingCopy } from "../harness/grasp-story.js";
import { type InProcessOptions, removeFolder, type TestServer } from "../harness/server.js";

export const switchedOn = { NGIT_GRASP06_ENABLE: "true" };

export const beginPrs = (options: InProcessOptions = {}): Promise<Story> =>
  Story.begin({ ...options, settings: { ...switchedOn, ...options.settings } });

/** A server, one that follows it, and folders that go when both have ended. */
export interface Pair {
  readonly first: Story;
  readonly second: Story;
  readonly folders: string[];
  end(): Promise<void>;
}

export async function beginPair(): Promise<Pair> {
  const first = await Story.begin({ backend: "lmdb", settings: switchedOn });
  const follow = { NGIT_SYNC_BOOTSTRAP_RELAY_URL: `ws://${first.server.domain}`, NGIT_GIT_HUNT_SYNC_DELAY_MS: "500" };
  const second = await Story.begin({ settings: follow });
  const folders: string[] = [];
  return {
    ...{ first, second, folders },
    async end() {
      await second.end();
      await first.end();
      for (const folder of folders) await removeFolder(folder);
    },
  };
}

export const prsUrl = ({ server }: Story, signer: Person, identifier: string): string =>
  `${server.origin}/prs/${signer.npub}/${encodeURIComponent(identifier)}.git`;

export const prsDirectory = ({ server }: Story, signer: Person, identifier: string): string =>
  join(server.gitPath, "prs", signer.pubkey, `${identifier}.git`);

export interface Wish {
  readonly kind?: number;
  /** Instead of the one under the signer's own path. */
  readonly clone?: string;
  readonly coordinate?: string;
  readonly more?: readonly (readonly string[])[];
}

export function pullRequest(
  story: Story,
  signer: Person,
  owner: Person,
  identifier: string,
  tip: string,
  wish: Wish = {},
): SignedEvent {
  return signer.sign(wish.kind ?? 1618, [
    ["a", wish.coordinate ?? owner.coordinate(identifier)],
    ["c", tip],
    ["clone", wish.clone ?? prsUrl(story, signer, identifier)],
    ["subject", `work on ${identifier}`],
    ...(wish.more ?? []),
  ]);
}

export const refOf = ({ id }: SignedEvent): string => `refs/nostr/${id}`;

/** Refs as git lists them, by name. */
export async function listed(url: string): Promise<Record<string, string>> {
  const { code, stdout, stderr } = await runProgram("git", ["ls-remote", url]);
  if (code !== 0) throw new Error(stderr);
  const lines = stdout.split("\n").filter((line) => line !== "");
  return Object.fromEntries(lines.map((line) => line.split("\t").reverse() as [string, string]));
}

export const push = (work: WorkingCopy, url: string, event: SignedEvent | string, from = "HEAD") =>
  work.git("push", url, `${from}:${typeof event === "string" ? event : refOf(event)}`);

/** Every name below the git data directory: to be compared before and after. */
export function everythingIn({ gitPath }: TestServer): string[] {
  return existsSync(gitPath) ? (readdirSync(gitPath, { recursive: true }) as string[]).sort() : [];
}
