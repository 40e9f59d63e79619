// A benchmark corpus made from a seed: keys, repositories with Zipf popularity, threads about them.
// The same seed gives the same events, so runs compare; the fingerprint says which corpus was used.

import { createHash } from "node:crypto";
import { eventId, type UnsignedEvent } from "../src/nostr/event.js";
import type { Pubkey } from "../src/nostr/ids.js";

/** Small, quick, good enough for test data (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Index from 0 to n-1 where low ones are far more likely (exponent 1). */
export function zipfIndex(random: () => number, n: number): number {
  return Math.min(n - 1, Math.floor(n ** random()) - 1);
}

export interface CorpusOptions {
  readonly seed: number;
  readonly authors: readonly Pubkey[];
  readonly repositories: number;
  readonly events: number;
  /** Newest creation time, in seconds. */
  readonly newestSeconds: number;
}

const contentOf = (random: () => number): string => {
  const words = 20 + Math.floor(random() * 80);
  let text = "";
  for (let i = 0; i < words; i++) text += `${Math.floor(random() * 2 ** 32).toString(36)} `;
  return text.trim();
};

/** Announcements first, then issues, comments and states about them, times rising with some disorder. */
export function* corpus(options: CorpusOptions): Generator<UnsignedEvent> {
  const random = seededRandom(options.seed);
  const { authors, repositories, events, newestSeconds } = options;
  const authorAt = (index: number): Pubkey => authors[index % authors.length] as Pubkey;
  const coordinate = (repo: number): string => `30617:${authorAt(repo)}:repo-${repo}`;
  const recentRoots: { id: string; repo: number }[] = [];
  for (let i = 0; i < events; i++) {
    const created_at = newestSeconds - (events - i) + Math.floor(random() * 600) - 600;
    if (i < repositories) {
      yield {
        pubkey: authorAt(i),
        created_at,
        kind: 30617,
        tags: [
          ["d", `repo-${i}`],
          ["name", `Repository ${i}`],
          ["description", contentOf(random).slice(0, 120)],
          ["clone", `https://git.example.com/r${i}.git`],
          ["relays", "wss://relay.example.com"],
        ],
        content: "",
      };
      continue;
    }
    const repo = zipfIndex(random, repositories);
    const pubkey = authorAt(zipfIndex(random, authors.length));
    if (random() < 0.2 || recentRoots.length === 0) {
      const issue: UnsignedEvent = {
        pubkey,
        created_at,
        kind: 1621,
        tags: [
          ["a", coordinate(repo)],
          ["p", authorAt(repo)],
          ["subject", contentOf(random).slice(0, 60)],
          ["t", "bug"],
        ],
        content: contentOf(random),
      };
      const root = { id: eventId(issue), repo };
      if (recentRoots.length < 5_000) recentRoots.push(root);
      else recentRoots[Math.floor(random() * recentRoots.length)] = root;
      yield issue;
    } else {
      const root = recentRoots[zipfIndex(random, recentRoots.length)] as { id: string; repo: number };
      yield {
        pubkey,
        created_at,
        kind: 1111,
        tags: [
          ["A", coordinate(root.repo)],
          ["E", root.id],
          ["K", "1621"],
          ["e", root.id],
          ["k", "1621"],
          ["p", authorAt(root.repo)],
        ],
        content: contentOf(random),
      };
    }
  }
}

export function fingerprint(events: Iterable<{ readonly id: string }>): string {
  const hash = createHash("sha256");
  for (const event of events) hash.update(event.id);
  return hash.digest("hex").slice(0, 12);
}
