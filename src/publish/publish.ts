// Publishes a repository to a GRASP server: announces it, waits until the server knows it, states where the branches are,
// pushes with git. Works against any such server; answers relays that ask who is there.

import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { repositoryAuthorization } from "../access/signed-request.js";
import { type Clock, unixSeconds } from "../base/clock.js";
import { maintainerWalk, rolesOf } from "../catalogue/maintainer-set.js";
import { RelayDialer } from "../net/relay-dialer.js";
import { normalRelayUrl } from "../net/url.js";
import { compareNewestFirst, kinds, type NostrEvent, type Pubkey } from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import { type EventDraft, type SecretKey, signEvent } from "../nostr/keys.js";
import { type Conversation, converse, OneOffFailure, request } from "../sync/conversation.js";
import {
  announcementDraft,
  cloneUrlOf,
  type Place,
  type Refs,
  refsOfState,
  refsToState,
  stateDraft,
} from "./drafts.js";
import { PublishRefusal, type PushProgress, type Remote, type WorkTree } from "./work-tree.js";

export interface Publication {
  readonly place: Place;
  readonly key: SecretKey;
  readonly tree: WorkTree;
  readonly clock: Clock;
  readonly userAgent: string;
  /** Announce it (again) before the state. */
  readonly about?: { readonly name?: string; readonly description?: string };
  readonly all: boolean;
  readonly force: boolean;
  readonly progress: PushProgress;
}

export interface Published {
  readonly announced: boolean;
  readonly stated: boolean;
  /** The server is for its members. */
  readonly isPrivate: boolean;
  readonly refs: Refs;
  /** Refs that the server has now and had not before. */
  readonly moved: readonly string[];
  /** Of these, the ones git had to bring; the others' commits were there, and the state alone moved them. */
  readonly pushed: readonly string[];
}

// Of one short conversation with a relay the user named.
const settings = {
  syncDialTimeoutSecs: 10,
  maxMessageBytes: 4 * 2 ** 20,
  syncPingIntervalSecs: 30,
  syncSilentLinkSecs: 60,
  sendMaxBytes: 64 * 2 ** 20,
};
/** An accepted announcement is a repository a moment later. */
const lookAgainMs = 250;
const knownWithinMs = 15_000;

export async function publishRepository(publication: Publication): Promise<Published> {
  const { place, key, tree, clock, about } = publication;
  const head = await tree.headRef();
  const local = await tree.refs();
  if (head === undefined || !local.has(head)) {
    throw new PublishRefusal(`${tree.folder} has no commit on a branch that is checked out: commit something first`);
  }
  const relayUrl = normalRelayUrl(place.server.relay);
  if (!relayUrl) throw new PublishRefusal(`${place.server.relay} is no relay's address`);
  const dialer = new RelayDialer(
    clock,
    () => settings,
    () => "private",
    publication.userAgent,
    undefined,
    key,
  );
  const relay = new OwnRelay(await converse(relayUrl, dialer, new AbortController().signal), key);
  try {
    const tags = new Map([["d", [place.identifier]]]);
    let announced = false;
    if (about) {
      const earlier = await relay.newest({ kinds: [kinds.announcement], authors: [place.owner], tags });
      const firstCommit = await tree.firstCommit();
      const facts = { ...about, ...(firstCommit !== undefined && { firstCommit }) };
      announced = await relay.sign(announcementDraft(place, facts, earlier, unixSeconds(clock)), "the announcement");
    }
    const authors = [...new Set([...(await maintainersAt(relay, place)), key.pubkey])];
    const earlier = await relay.newest({ kinds: [kinds.state], authors, tags });
    const url = cloneUrlOf(place);
    // A relay that wants to know who is there belongs to a server that asks git the same (GRASP-08).
    const sign = (): string => repositoryAuthorization(key, url, clock, randomBytes);
    const remote: Remote = { url, authorization: () => (relay.isAsking ? sign() : undefined) };
    const there = await refsOnceKnown(tree, remote, clock);
    const published = earlier ? refsOfState(earlier) : there;
    const asked = refsToState(local, published, head, publication.all);
    const refs = publication.all ? asked : await withoutOldOnes(tree, asked, published, head);
    const moved = [...refs].filter(([name, oid]) => local.get(name) === oid && there.get(name) !== oid);
    if (!publication.force) await refuseLoss(tree, moved, there);
    const stated = await relay.sign(stateDraft(place.identifier, refs, head, earlier, unixSeconds(clock)), "the state");
    // What a pull request has brought is there already: then the state alone has moved the branch.
    const now = moved.length > 0 ? await tree.refsAt(remote) : undefined;
    const pushed = moved.filter(([name, oid]) => now?.get(name) !== oid).map(([name]) => name);
    if (pushed.length > 0) await tree.push(remote, pushed, publication);
    return { announced, stated, isPrivate: relay.isAsking, refs, moved: moved.map(([name]) => name), pushed };
  } finally {
    relay.close();
  }
}

/** Whose states count: the newest of all of them says where the branches are, and not the newest of one's own. */
async function maintainersAt(relay: OwnRelay, { owner, identifier }: Place): Promise<ReadonlySet<Pubkey>> {
  const tags = new Map([["d", [identifier]]]);
  // Whether this server asks for answers is not known: whoever is listed without one has no state there.
  const walk = maintainerWalk(owner, false);
  let step = walk.next();
  while (!step.done) {
    const newest = await relay.newest({ kinds: [kinds.announcement], authors: [step.value], tags });
    step = walk.next(newest && rolesOf(newest));
  }
  return step.value.members;
}

async function refsOnceKnown(tree: WorkTree, remote: Remote, clock: Clock): Promise<Refs> {
  const startedMs = clock.monotonicMs();
  for (;;) {
    const refs = await tree.refsAt(remote);
    if (refs) return refs;
    if (clock.monotonicMs() - startedMs > knownWithinMs) {
      throw new PublishRefusal(
        `${remote.url} cannot be read by git: is it announced there? \`holdfast init\` announces it`,
      );
    }
    await delay(lookAgainMs);
  }
}

/** A branch that somebody else has moved on, and that nobody asked for now, stays where it is. */
async function withoutOldOnes(tree: WorkTree, asked: Refs, published: Refs, head: string): Promise<Refs> {
  const refs = new Map(asked);
  for (const [name, oid] of published) {
    if (name === head || refs.get(name) === oid || (await tree.contains(oid, refs.get(name) ?? ""))) continue;
    refs.set(name, oid);
  }
  return refs;
}

/** Commits that others pushed must not be lost by accident: a state alone moves a branch. */
async function refuseLoss(tree: WorkTree, moved: readonly (readonly [string, string])[], there: Refs): Promise<void> {
  for (const [name, oid] of moved) {
    const older = there.get(name);
    if (older === undefined || (await tree.contains(older, oid))) continue;
    throw new PublishRefusal(
      `${name} has commits on the server that are not here: \`git pull\` first, or give them up with --force`,
    );
  }
}

/** The relay, asked one thing after the other. */
class OwnRelay {
  constructor(
    private readonly conversation: Conversation,
    private readonly key: SecretKey,
  ) {}

  /** Whether there was something to publish. */
  async sign(draft: EventDraft | undefined, what: string): Promise<boolean> {
    if (!draft) return false;
    const event = signEvent(this.key, draft, randomBytes);
    let answer = await this.#publish(event);
    if (!answer.ok && (await this.conversation.enterIfAsked(answer.text))) answer = await this.#publish(event);
    if (!answer.ok) throw new PublishRefusal(`${this.conversation.url} refuses ${what}: ${answer.text}`);
    return true;
  }

  async newest(filter: Filter): Promise<NostrEvent | undefined> {
    try {
      return (await request(this.conversation, filter)).sort(compareNewestFirst)[0];
    } catch (error) {
      if (!(error instanceof OneOffFailure)) throw error;
      const { url } = this.conversation;
      // Some name the relay themselves.
      throw new PublishRefusal(error.message.startsWith(url) ? error.message : `${url}: ${error.message}`);
    }
  }

  get isAsking(): boolean {
    return this.conversation.isKnown;
  }

  close(): void {
    this.conversation.close();
  }

  #publish(event: NostrEvent): Promise<{ readonly ok: boolean; readonly text: string }> {
    return this.conversation.exchange(
      () => this.conversation.say((client) => client.publish(event.raw)),
      (message, done) => {
        if (message.type === "OK" && message.id === event.id) done({ ok: message.ok, text: message.text });
      },
    );
  }
}
