// Publishes a repository to a GRASP server: announces it, waits until the server knows it, states where the branches are,
// pushes with git. Works against any such server; answers relays that ask who is there.

import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type Clock, unixSeconds } from "../base/clock.js";
import { authEvent, type RelayMessage } from "../net/relay-client.js";
import { RelayDialer } from "../net/relay-dialer.js";
import { normalRelayUrl, type RelayUrl } from "../net/url.js";
import { compareNewestFirst, kinds, type NostrEvent, parseEvent } from "../nostr/event.js";
import { type Filter, matcherOf } from "../nostr/filter.js";
import { type EventDraft, type SecretKey, signEvent } from "../nostr/keys.js";
import { type Conversation, converse } from "../sync/conversation.js";
import {
  announcementDraft,
  cloneUrlOf,
  type Place,
  type Refs,
  refsOfState,
  refsToState,
  stateDraft,
} from "./drafts.js";
import { PublishRefusal, type WorkTree } from "./work-tree.js";

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
}

export interface Published {
  readonly announced: boolean;
  readonly stated: boolean;
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
  const url = normalRelayUrl(place.server.relay);
  if (!url) throw new PublishRefusal(`${place.server.relay} is no relay's address`);
  const dialer = new RelayDialer(
    clock,
    () => settings,
    () => "private",
    publication.userAgent,
  );
  const relay = new OwnRelay(await converse(url, dialer, new AbortController().signal), url, key);
  try {
    const tags = new Map([["d", [place.identifier]]]);
    let announced = false;
    if (about) {
      const earlier = await relay.newest({ kinds: [kinds.announcement], authors: [place.owner], tags });
      const firstCommit = await tree.firstCommit();
      const facts = { ...about, ...(firstCommit !== undefined && { firstCommit }) };
      announced = await relay.sign(announcementDraft(place, facts, earlier, unixSeconds(clock)), "the announcement");
    }
    const cloneUrl = cloneUrlOf(place);
    const there = await refsOnceKnown(tree, cloneUrl, clock);
    const authors = [...new Set([place.owner, key.pubkey])];
    const earlier = await relay.newest({ kinds: [kinds.state], authors, tags });
    const refs = refsToState(local, earlier ? refsOfState(earlier) : there, head, publication.all);
    const moved = [...refs].filter(([name, oid]) => local.get(name) === oid && there.get(name) !== oid);
    if (!publication.force) await refuseLoss(tree, moved, there);
    const stated = await relay.sign(stateDraft(place.identifier, refs, head, earlier, unixSeconds(clock)), "the state");
    // What a pull request has brought is there already: then the state alone has moved the branch.
    const now = moved.length > 0 ? await tree.refsAt(cloneUrl) : undefined;
    const pushed = moved.filter(([name, oid]) => now?.get(name) !== oid).map(([name]) => name);
    if (pushed.length > 0) await tree.push(cloneUrl, pushed, publication.force);
    return { announced, stated, refs, moved: moved.map(([name]) => name), pushed };
  } finally {
    relay.close();
  }
}

async function refsOnceKnown(tree: WorkTree, url: string, clock: Clock): Promise<Refs> {
  const startedMs = clock.monotonicMs();
  for (;;) {
    const refs = await tree.refsAt(url);
    if (refs) return refs;
    if (clock.monotonicMs() - startedMs > knownWithinMs) {
      throw new PublishRefusal(`${url} cannot be read by git: is it announced there? \`holdfast init\` announces it`);
    }
    await delay(lookAgainMs);
  }
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

/** The relay, asked one thing after the other; it may want to know who is there. */
class OwnRelay {
  #challenge: string | undefined;
  #isIn = false;

  constructor(
    private readonly conversation: Conversation,
    private readonly url: RelayUrl,
    private readonly key: SecretKey,
  ) {}

  /** Whether there was something to publish. */
  async sign(draft: EventDraft | undefined, what: string): Promise<boolean> {
    if (!draft) return false;
    const event = signEvent(this.key, draft, randomBytes);
    let answer = await this.#publish(event);
    if (!answer.ok && (await this.#enterIfAsked(answer.text))) answer = await this.#publish(event);
    if (!answer.ok) throw new PublishRefusal(`${this.url} refuses ${what}: ${answer.text}`);
    return true;
  }

  async newest(filter: Filter): Promise<NostrEvent | undefined> {
    let answer = await this.#ask(filter);
    if (answer.closed !== undefined && (await this.#enterIfAsked(answer.closed))) answer = await this.#ask(filter);
    if (answer.closed !== undefined) throw new PublishRefusal(`${this.url} does not answer: ${answer.closed}`);
    return answer.events.sort(compareNewestFirst)[0];
  }

  close(): void {
    this.conversation.close();
  }

  #publish(event: NostrEvent): Promise<{ readonly ok: boolean; readonly text: string }> {
    return this.#exchange(
      () => this.conversation.say((client) => client.publish(event.raw)),
      (message, done) => {
        if (message.type === "OK" && message.id === event.id) done({ ok: message.ok, text: message.text });
      },
    );
  }

  async #ask(filter: Filter): Promise<{ readonly events: NostrEvent[]; readonly closed?: string }> {
    const name = this.conversation.name();
    const events: NostrEvent[] = [];
    const isAskedFor = matcherOf(filter);
    const closed = await this.#exchange<string | undefined>(
      () => this.conversation.say((client) => client.subscribe(name, [filter])),
      (message, done) => {
        if (!("subscription" in message) || message.subscription !== name) return;
        if (message.type === "EVENT") {
          const parsed = parseEvent(message.event);
          if (parsed.ok && isAskedFor(parsed.event)) events.push(parsed.event);
        } else done(message.type === "CLOSED" ? message.text : undefined);
      },
    );
    if (closed !== undefined) return { events, closed };
    this.conversation.say((client) => client.unsubscribe(name));
    return { events };
  }

  async #enterIfAsked(refusal: string): Promise<boolean> {
    if (this.#isIn || !/^auth-required:/.test(refusal)) return false;
    const { clock } = this.conversation;
    let sent: string | undefined;
    const answer = (challenge: string): void => {
      const event = authEvent(this.key, this.url, challenge, clock);
      sent = event.id;
      this.conversation.say((client) => client.authenticate(event));
    };
    this.#isIn = await this.conversation.exchange<boolean>(
      () => {
        if (this.#challenge !== undefined) answer(this.#challenge);
      },
      (message, done) => {
        if (message.type === "AUTH" && sent === undefined) answer(message.challenge);
        if (message.type === "OK" && message.id === sent) done(message.ok);
      },
    );
    return this.#isIn;
  }

  #exchange<T>(start: () => void, listen: (message: RelayMessage, done: (result: T) => void) => void): Promise<T> {
    return this.conversation.exchange<T>(start, (message, done) => {
      if (message.type === "AUTH") this.#challenge = message.challenge;
      else listen(message, done);
    });
  }
}
