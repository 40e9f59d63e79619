// A small world for tests of rules: people with keys, events with real ids (signatures are not admission's business),
// a naive store, and the real policy with the real writing of verdicts.

import { createHash } from "node:crypto";
import { type AdmissionLists, emptyList, openLists } from "../../catalogue/bans-and-lists.js";
import {
  catalogueRow,
  type RepositoryName,
  type RepositoryStatus,
  repositoryAddress,
  setCatalogueRow,
  withStatus,
} from "../../catalogue/repositories.js";
import { removeWaiting, waitingAnnouncement, waitingEvent } from "../../catalogue/waiting.js";
import { defaultConfig } from "../../config/testing/default-config.js";
import { type ServiceName, serviceName } from "../../net/url.js";
import { eventFromStoredText, eventId, kinds, type Pubkey, type Tag, type VerifiedEvent } from "../../nostr/event.js";
import { npubOf } from "../../nostr/nip19.js";
import { NaiveStore } from "../../store/testing/naive-store.js";
import { refusedFromClient } from "../at-the-door.js";
import { createAdmissionPolicy } from "../policy.js";
import { type AdmissionConfig, type AdmissionSettings, type ArchiveRules, admissionSettings } from "../settings.js";
import { type AdmissionPolicy, applyVerdict, type Source, type Verdict } from "../verdict.js";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** The same key for the same name, always. */
export const keyOf = (name: string): Pubkey => sha256(`key of ${name}`) as Pubkey;

export const oid = (text: string): string => sha256(text).slice(0, 40);

export const startSeconds = 1_700_000_000;

export function makeEvent(
  author: Pubkey,
  kind: number,
  tags: readonly Tag[],
  at = startSeconds,
  content = "",
): VerifiedEvent {
  const unsigned = { pubkey: author, created_at: at, kind, tags, content };
  return eventFromStoredText(JSON.stringify({ id: eventId(unsigned), ...unsigned, sig: sha256(content).repeat(2) }));
}

const service = serviceName("grasp.example");
if (service === undefined) throw new Error("the test's service name is valid");

export const noArchive: ArchiveRules = { all: false, whitelist: emptyList, serviceHosts: new Set() };

export interface WorldOptions {
  readonly lists?: Partial<AdmissionLists>;
  readonly archive?: Partial<ArchiveRules>;
  readonly config?: Partial<AdmissionConfig>;
  readonly grasp06?: boolean;
}

export const client = (ip = "192.0.2.1", ...authenticated: Pubkey[]): Source => ({
  type: "client",
  ip,
  authenticated: new Set(authenticated),
});

export const sync: Source = { type: "sync", relay: "wss://peer.example", phase: "live" };

export class World {
  readonly store = new NaiveStore();
  now = startSeconds;
  lists: AdmissionLists;
  archive: ArchiveRules;
  readonly policy: AdmissionPolicy;
  readonly settings: AdmissionSettings;

  constructor(options: WorldOptions = {}) {
    this.lists = { ...openLists, ...options.lists };
    const config = defaultConfig({ ...options.config, grasp06Enable: options.grasp06 ?? false });
    this.archive = { ...noArchive, ...options.archive };
    this.settings = {
      ...admissionSettings(() => config, keyOf("server"), [service as ServiceName]),
      adminKeys: () => new Set([keyOf("admin")]),
      lists: () => this.lists,
      archive: () => this.archive,
    };
    this.policy = createAdmissionPolicy(this.settings);
  }

  /** Only asks, as intake does: at the door, then the policy. */
  async ask(event: VerifiedEvent, source: Source = client()): Promise<Verdict> {
    const refusal = source.type === "client" ? refusedFromClient(event, source) : undefined;
    return refusal ?? this.policy(event, { reader: this.store, source, nowSeconds: this.now });
  }

  /** Asks and writes what follows. */
  async send(event: VerifiedEvent, source: Source = client()): Promise<Verdict> {
    const verdict = await this.ask(event, source);
    await applyVerdict(this.store, event, verdict, this.now);
    return verdict;
  }

  /** What a release does to an announcement: from the waiting room to the store, its repository served. */
  async release(name: RepositoryName, status: RepositoryStatus = "served"): Promise<void> {
    const entry = await waitingAnnouncement(this.store, name);
    if (!entry) throw new Error(`${repositoryAddress(name)} does not wait`);
    await removeWaiting(this.store, entry.id);
    await this.store.put(waitingEvent(entry));
    await this.setStatus(name, status);
  }

  async setStatus(name: RepositoryName, status: RepositoryStatus): Promise<void> {
    const row = await catalogueRow(this.store, name);
    if (!row) throw new Error(`${repositoryAddress(name)} is not in the catalogue`);
    setCatalogueRow(this.store, withStatus(row, status, this.now));
  }

  /** A hosted repository with data. */
  async host(owner: string, identifier: string, tags: readonly Tag[] = []): Promise<VerifiedEvent> {
    const event = announcement(owner, identifier, tags, this.now);
    await this.send(event);
    await this.release({ owner: keyOf(owner), identifier });
    return event;
  }
}

export const cloneUrl = (owner: string, identifier: string): string =>
  `https://grasp.example/${npubOf(keyOf(owner))}/${encodeURIComponent(identifier)}.git`;

/** An announcement that lists this service. */
export function announcement(
  owner: string,
  identifier: string,
  tags: readonly Tag[] = [],
  at = startSeconds,
): VerifiedEvent {
  const listing: Tag[] = [
    ["d", identifier],
    ["clone", cloneUrl(owner, identifier)],
    ["relays", "wss://grasp.example"],
  ];
  return makeEvent(keyOf(owner), kinds.announcement, [...listing, ...tags], at);
}

/** An announcement that lists only another service. */
export const elsewhere = (
  owner: string,
  identifier: string,
  tags: readonly Tag[] = [],
  at = startSeconds,
): VerifiedEvent =>
  makeEvent(
    keyOf(owner),
    kinds.announcement,
    [["d", identifier], ["clone", "https://other.example/x.git"], ["relays", "wss://other.example"], ...tags],
    at,
  );

export const maintainers = (...names: string[]): Tag => ["maintainers", ...names.map(keyOf)];

export const state = (
  author: string,
  identifier: string,
  refs: readonly Tag[] = [["refs/heads/main", oid("1")]],
  at = startSeconds,
): VerifiedEvent => makeEvent(keyOf(author), kinds.state, [["d", identifier], ...refs], at);

export const nameOf = (owner: string, identifier: string): RepositoryName => ({ owner: keyOf(owner), identifier });
export const addressOfRepository = (owner: string, identifier: string): string =>
  repositoryAddress(nameOf(owner, identifier));

/** `store`, `hold`, … or the refusal's code. */
export const outcome = (verdict: Verdict): string => (verdict.ok ? verdict.action : verdict.code);
