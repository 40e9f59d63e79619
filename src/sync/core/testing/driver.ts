// Drives a core by hand: a clock that stands still until moved, random numbers that are all one half, and a memory of
// the commands. Answers nothing by itself.

import type { RelayLimits } from "../../../net/relay-dialer.js";
import type { RelayUrl } from "../../../net/url.js";
import type { EventId, NostrEvent, Pubkey } from "../../../nostr/event.js";
import type { SyncConfig } from "../config.js";
import { SyncCore } from "../core.js";
import type { Command, Input } from "../messages.js";
import type { CoreSnapshot, RelaySnapshot } from "../standing.js";
import { syncConfig } from "./config.js";

export type CommandOf<Type extends Command["type"]> = Extract<Command, { type: Type }>;

export const hex = (text: string): string => Buffer.from(text).toString("hex").padEnd(64, "0").slice(0, 64);
export const id = (text: string): EventId => hex(text) as EventId;
export const key = (text: string): Pubkey => hex(text) as Pubkey;
export const coordinate = (owner: string, identifier: string): string => `30617:${key(owner)}:${identifier}`;

export function event(
  name: string,
  kind: number,
  tags: readonly (readonly string[])[],
  more: Partial<NostrEvent> = {},
): NostrEvent {
  return {
    id: id(name),
    pubkey: key("somebody"),
    created_at: 1_600_000_000,
    kind,
    tags,
    content: "",
    sig: "",
    raw: name,
    ...more,
  };
}

export const announcing = (
  owner: string,
  identifier: string,
  relays: readonly string[],
  more: Partial<NostrEvent> = {},
): NostrEvent =>
  event(
    `${owner}/${identifier}`,
    30617,
    [
      ["d", identifier],
      ["relays", ...relays],
    ],
    { pubkey: key(owner), ...more },
  );

export const issue = (name: string, owner: string, identifier: string): NostrEvent =>
  event(name, 1621, [["a", coordinate(owner, identifier)]]);

export class Driver {
  readonly core: SyncCore;
  /** The core's own: what is changed here is in force. */
  readonly config: SyncConfig;
  readonly said: Command[] = [];
  wallMs = 1_700_000_000_000;
  nowMs = 0;
  #wakeMs = Number.POSITIVE_INFINITY;
  /** Our own store is read at once, and NEG-OPEN sent. */
  readsQuickly = true;
  /** What is found here of a relay's repositories when layer 4 looks. */
  related: { readonly ids: readonly EventId[]; readonly authors: readonly Pubkey[] } = { ids: [], authors: [] };
  readonly #links = new Map<string, number>();

  constructor(config: Partial<SyncConfig> = {}) {
    this.config = syncConfig({ ownServices: ["us.example"], syncStartupJitterMs: 0, ...config });
    this.core = new SyncCore(this.config);
  }

  tell(input: Input): Command[] {
    const commands = this.core.step(input, { wallMs: this.wallMs, monotonicMs: this.nowMs }, () => 0.5);
    for (const command of commands) {
      if (command.type === "wakeAt") this.#wakeMs = command.monotonicMs;
      if (command.type === "connect") this.#links.set(command.relay, command.link);
    }
    this.said.push(...commands);
    if (!this.readsQuickly) return commands;
    const sent = only(commands, "reconcile").flatMap(({ relay, link, session }) =>
      this.tell({ type: "reconcileProgress", relay, link, session }),
    );
    return [...commands, ...sent];
  }

  /** Moves time, waking the core when it asked to be woken. Returns what was said meanwhile. */
  advance(ms: number): Command[] {
    const from = this.said.length;
    const endMs = this.nowMs + ms;
    while (this.#wakeMs <= endMs) {
      this.wallMs += Math.max(0, this.#wakeMs - this.nowMs);
      this.nowMs = Math.max(this.nowMs, this.#wakeMs);
      this.#wakeMs = Number.POSITIVE_INFINITY;
      this.tell({ type: "tick" });
    }
    this.wallMs += endMs - this.nowMs;
    this.nowMs = endMs;
    return this.said.slice(from);
  }

  link(relay: string): number {
    return this.#links.get(relay) ?? 0;
  }

  /** An input from the relay's present socket. */
  from<Type extends Input["type"]>(relay: string, type: Type, rest: Record<string, unknown> = {}): Command[] {
    return this.tell({ type, relay, link: this.link(relay), ...rest } as unknown as Input);
  }

  connect(relay: string, limits?: RelayLimits): Command[] {
    const said = this.from(relay, "connected");
    return limits ? [...said, ...this.from(relay, "nip11", { limits })] : said;
  }

  /** Answers EOSE, empty reconciliations and layer 4's look into our store for `relay` until it asks nothing more. */
  settle(relay: string, from = 0): Command[] {
    const start = this.said.length;
    for (let at = from; at < this.said.length; at++) {
      const command = this.said[at]!;
      if (command.type === "lookUpRelated" && command.relay === relay)
        this.tell({ type: "related", relay, request: command.request, ...this.related });
      if (!("link" in command) || command.relay !== relay || command.link !== this.link(relay)) continue;
      if (command.type === "subscribe") this.from(relay, "eose", { subscription: command.subscription });
      if (command.type === "reconcile")
        this.from(relay, "reconciled", { session: command.session, missing: [], peerMissing: 0 });
    }
    return this.said.slice(start);
  }

  /** A repository listed at `relay`, connected, everything answered: the relay is live. */
  makeLive(relay: string, announcement: NostrEvent): void {
    this.tell({ type: "accepted", event: announcement, hosted: true });
    this.tell({ type: "replayEnded" });
    this.advance(5000);
    const from = this.said.length;
    this.connect(relay);
    this.settle(relay, from);
  }

  snapshot(): CoreSnapshot {
    return this.core.snapshot({ wallMs: this.wallMs, monotonicMs: this.nowMs });
  }

  relay(name: string): RelaySnapshot | undefined {
    return this.snapshot().relays.find((relay) => relay.relay === name);
  }
}

export const only = <Type extends Command["type"]>(commands: readonly Command[], type: Type): CommandOf<Type>[] =>
  commands.filter((command): command is CommandOf<Type> => command.type === type);

/** Live (`l…`) or history (`h…`) subscriptions. */
export const subscribed = (commands: readonly Command[], prefix: "l" | "h"): CommandOf<"subscribe">[] =>
  only(commands, "subscribe").filter((command) => command.subscription.startsWith(prefix));

/** The ids that were asked for, request by request. */
export const fetched = (commands: readonly Command[]): (readonly EventId[])[] =>
  subscribed(commands, "h").flatMap(({ filters }) => (filters[0]?.ids ? [filters[0].ids] : []));

export const bootstrap = (url: string): RelayUrl => url as RelayUrl;
