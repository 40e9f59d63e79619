// The server says who it is (grasp.md, GRASP-03): a profile (kind 0) and a relay list (10002) of its own key, on its own
// relay, renewed when the settings they are made from have changed; and to the index relays, only if the operator wishes.

import { randomBytes } from "node:crypto";
import { repeatedly, unixSeconds } from "../base/clock.js";
import { sharedAbort } from "../base/shared-abort.js";
import { type Config, publicUrls } from "../config/config.js";
import type { Context } from "../context.js";
import type { Intake } from "../intake/intake.js";
import { reachOf } from "../net/address.js";
import { RelayDialer } from "../net/relay-dialer.js";
import { normalRelayUrl, type RelayUrl } from "../net/url.js";
import { kinds, type NostrEvent } from "../nostr/event.js";
import { type EventDraft, type SecretKey, signEvent } from "../nostr/keys.js";
import { converse, OneOffFailure } from "./conversation.js";

interface UsedRooms {
  readonly intake: Intake;
  readonly serverSecret: SecretKey;
  readonly inForce: () => Config;
}

/** Index relays forget what they were told long ago. */
const sendEveryMs = 24 * 60 * 60_000;
const sendSoonMs = 5_000;

type Said = Omit<EventDraft, "created_at">;

export function ownProfile(config: Config): readonly Said[] {
  const { http, relay } = publicUrls(config);
  const profile = {
    name: config.relayName,
    about: config.relayDescription,
    picture: config.relayIcon,
    banner: config.relayBanner,
    website: http,
    nip05: config.domain.includes("/") ? undefined : `_@${config.domain}`,
  };
  return [
    { kind: kinds.profile, tags: [], content: JSON.stringify(profile) },
    { kind: kinds.relayList, tags: [["r", relay]], content: "" },
  ];
}

/** A test suite finds its own events here and no others, unless it asks for these. */
const isSaid = ({ test, publishProfile }: Config): boolean => !test || publishProfile;

export async function sayWhoWeAre(context: Context, rooms: UsedRooms): Promise<{ close(): Promise<void> }> {
  const { live, clock, logger, version, onFault } = context;
  await storeProfile(context, rooms);
  const stop = sharedAbort();
  const stopListening = live.onChange(() => void storeProfile(context, rooms).catch(onFault));
  const dialer = new RelayDialer(
    clock,
    () => live.current,
    () => reachOf(live.current),
    `holdfast/${version}`,
  );
  let waitMs = live.current.test ? 100 : sendSoonMs;
  const sending = repeatedly(clock, () => waitMs, send, onFault);

  async function send(): Promise<void> {
    waitMs = sendEveryMs;
    if (!live.current.publishProfile) return;
    const events = await storeProfile(context, rooms);
    for (const url of live.current.userIndexRelays.flatMap((text) => normalRelayUrl(text) ?? [])) {
      try {
        await publish(url, events, dialer, stop.signal);
      } catch (error) {
        if (!(error instanceof OneOffFailure)) throw error;
        if (!stop.signal.aborted) logger.warn({ relay: url, reason: error.message }, "our profile could not be sent");
      }
    }
  }

  return {
    async close() {
      stopListening();
      stop.abort();
      await sending.close();
    },
  };
}

/** What is stored of ourselves, made anew where it says something else. */
async function storeProfile({ store, clock }: Context, rooms: UsedRooms): Promise<NostrEvent[]> {
  const { intake, serverSecret, inForce } = rooms;
  const events: NostrEvent[] = [];
  const config = inForce();
  for (const said of isSaid(config) ? ownProfile(config) : []) {
    const known = await store.latest({ kind: said.kind, pubkey: serverSecret.pubkey, identifier: "" });
    const isSame =
      known?.event.content === said.content && JSON.stringify(known.event.tags) === JSON.stringify(said.tags);
    if (known && isSame) {
      events.push(known.event);
      continue;
    }
    const created_at = Math.max(unixSeconds(clock), (known?.event.created_at ?? 0) + 1);
    const event = signEvent(serverSecret, { ...said, created_at }, randomBytes);
    const answer = await intake.submit(event, { type: "own" });
    if (answer.ok) events.push(event);
  }
  return events;
}

async function publish(
  url: RelayUrl,
  events: readonly NostrEvent[],
  dialer: RelayDialer,
  signal: AbortSignal,
): Promise<void> {
  const conversation = await converse(url, dialer, signal);
  try {
    for (const event of events) {
      await conversation.exchange<void>(
        () => conversation.say((client) => client.publish(event.raw)),
        (message, done) => {
          if (message.type === "OK" && message.id === event.id) done();
        },
      );
    }
  } finally {
    conversation.close();
  }
}
