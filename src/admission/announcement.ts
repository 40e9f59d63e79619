// Rule 2 of relay.md: announcements (30617). Facts are read first (announcement-facts.ts), then decided: facts in, verdict out.

import type { Facts } from "../catalogue/decisions.js";
import { type CatalogueRow, newRepositoryRow, repositoryAddress, withStatus } from "../catalogue/repositories.js";
import type { ServiceName } from "../net/url.js";
import { compareNewestFirst, type VerifiedEvent } from "../nostr/event.js";
import { announcementOf } from "../nostr/nip34.js";
import { type AnnouncementFacts, readAnnouncementFacts } from "./announcement-facts.js";
import type { MembershipChange } from "./membership.js";
import { listingAdvice } from "./service.js";
import type { AdmissionConfig, AdmissionSettings } from "./settings.js";
import {
  type AdmissionContext,
  type Change,
  held,
  known,
  purgatoryMessage,
  type RepositoryChange,
  refused,
  type Source,
  stored,
  type Verdict,
} from "./verdict.js";
import { announcementDeadline, newEntry, restarted, waitingRoomFull } from "./waiting-capacity.js";
import { endOfWait } from "./withdrawal.js";

interface AnnouncementCase {
  readonly event: VerifiedEvent;
  readonly facts: AnnouncementFacts;
  readonly source: Source;
  readonly nowSeconds: number;
  readonly config: AdmissionConfig;
  readonly services: readonly ServiceName[];
}

/** What is wrong with the announcement itself, whoever sent it. */
function announcementFault(event: VerifiedEvent): string | undefined {
  const identifier = announcementOf(event)?.identifier ?? "";
  if (identifier === "") return "the d tag lacks an identifier";
  if (identifier.includes("\0")) return "the identifier in the d tag must not contain NUL";
  return undefined;
}

export async function judgeAnnouncement(
  event: VerifiedEvent,
  context: AdmissionContext,
  settings: AdmissionSettings,
): Promise<Verdict> {
  const announcement = announcementOf(event);
  const fault = announcementFault(event);
  if (!announcement || fault !== undefined)
    return refused("announcement", "bad-announcement", fault ?? "not an announcement");
  const { source, nowSeconds } = context;
  const config = settings.config();
  if (!config.privateMode && event.tags.some(([name, value]) => name === "private" && value === "true")) {
    const advice =
      "this announcement asks for a private service and this one is public: remove the private tag, or this server from it";
    return refused("announcement", "private-announcement", advice);
  }
  const facts = await readAnnouncementFacts(event, announcement, context, settings);
  const verdict = decideAnnouncement({ event, facts, source, nowSeconds, config, services: settings.services });
  const isNewcomer = verdict.ok && verdict.action === "hold" && verdict.isNew && source.type === "client";
  if (
    !isNewcomer ||
    settings.newAnnouncements.allows(source.ip, event.id, nowSeconds, config.purgatoryAnnouncementsPerHourPerIp)
  ) {
    return verdict;
  }
  const sentence = `more than ${config.purgatoryAnnouncementsPerHourPerIp} new repositories an hour from this address: try again later`;
  return refused("waiting-room", "rate-limited", sentence, verdict.facts);
}

const record = ({ facts }: AnnouncementCase): Facts => ({
  repository: repositoryAddress(facts.name),
  listedInClone: facts.listing.inClone,
  listedInRelays: facts.listing.inRelays,
  status: facts.row?.status ?? null,
  exceptionOwner: facts.exceptionOwner ?? null,
  lapsed: facts.ifCounting.lapsed.map((lapse) => lapse.id),
});

const removals = ({ lapsed }: MembershipChange): Change[] =>
  lapsed.flatMap((lapse): Change[] => [
    { type: "remove", id: lapse.id, cause: "unhosted" },
    { type: "listings", name: lapse.name },
  ]);

const isOlderThan = (event: VerifiedEvent, other: { readonly id: string; readonly created_at: number } | undefined) =>
  other !== undefined && other.id !== event.id && compareNewestFirst(other, event) < 0;

function decideAnnouncement(context: AnnouncementCase): Verdict {
  const { event, facts } = context;
  if (facts.blacklisted) {
    return refused("repository-list", "repository-blocked", "this repository is not wanted here", record(context));
  }
  if (isOlderThan(event, facts.stored))
    return known("announcement", "superseded", "duplicate: a newer version is stored", record(context));
  if (isOlderThan(event, facts.waiting))
    return known("announcement", "superseded", "duplicate: a newer version is waiting", record(context));
  if (isOlderThan(event, facts.left))
    return known("announcement", "superseded", "duplicate: its author has withdrawn it", record(context));
  if (facts.waiting?.id === event.id) return sameAgain(context, facts.waiting);
  if (facts.listing.inClone && facts.listing.inRelays && facts.whitelisted) return host(context, null);
  if (facts.archiveUrls) return host(context, { cloneUrls: facts.archiveUrls });
  return notHosted(context);
}

/** The rules have changed: what they say now of an announcement that is here already. No changes: all stays as it is. */
export function reviewAnnouncement(context: AnnouncementCase): Verdict {
  const { facts, nowSeconds } = context;
  const { row, listing } = facts;
  const isOurs = listing.inClone && listing.inRelays && facts.whitelisted;
  const archive = isOurs ? null : facts.archiveUrls && { cloneUrls: facts.archiveUrls };
  const unchanged = known("archive", "duplicate", "nothing changes", record(context));
  if (!row || row.status === "deleted") return unchanged;
  if (facts.blacklisted || archive === undefined) return row.status === "leaving" ? unchanged : notHosted(context);
  const hasRepository = row.status !== "waiting" && row.status !== "soft";
  const status = !hasRepository ? row.status : archive ? "archived" : "served";
  if (row.status === status && JSON.stringify(row.archive) === JSON.stringify(archive)) return unchanged;
  if (hasRepository) return host(context, archive);
  return {
    ...unchanged,
    changes: [{ type: "catalogue", row: { ...withStatus(row, status, nowSeconds), archive } }],
    repositories: placeOnDisk(context, row.status === "soft" ? "soft" : "waiting"),
  };
}

/** nak sends a waiting announcement again and again; only a soft one is changed by that, and only by a client. */
function sameAgain(context: AnnouncementCase, waiting: NonNullable<AnnouncementFacts["waiting"]>): Verdict {
  const { facts, source, nowSeconds, config } = context;
  if (waiting.phase === "waiting" || source.type !== "client") {
    return known("announcement", "waiting", purgatoryMessage, record(context));
  }
  if (facts.waitingOfKey >= config.purgatoryMaxAnnouncementsPerKey) return tooMany(context);
  const entry = { ...restarted(waiting, nowSeconds, config), source: { type: "client" } as const };
  const row = facts.row ?? newRepositoryRow(facts.name, nowSeconds);
  return held("announcement", entry, false, record(context), {
    after: [{ type: "catalogue", row: withStatus(row, "waiting", nowSeconds) }],
    repositories: [{ name: facts.name, to: "create" }],
  });
}

function host(context: AnnouncementCase, archive: CatalogueRow["archive"]): Verdict {
  const { facts, nowSeconds } = context;
  const { row, name } = facts;
  const rule = archive ? "archive" : "announcement";
  if (!row || row.status === "waiting" || row.status === "soft" || row.status === "deleted") {
    return wait(context, archive);
  }
  const status = archive ? "archived" : "served";
  const changes: Change[] = [{ type: "listings", name }, ...removals(facts.ifCounting)];
  const isSame = row.status === status && JSON.stringify(row.archive) === JSON.stringify(archive);
  if (!isSame) changes.unshift({ type: "catalogue", row: { ...withStatus(row, status, nowSeconds), archive } });
  const repositories: RepositoryChange[] = row.status === status ? [] : [{ name, to: "return" }];
  const message = archive ? undefined : whereItIs(context);
  const { concerned } = facts.ifCounting;
  return stored(rule, record(context), {
    changes,
    repositories,
    concerned,
    ...(message === undefined ? {} : { message }),
  });
}

const whereItIs = ({ facts }: AnnouncementCase): string | undefined =>
  facts.listing.reallyAt && `the clone tag has another path, the repository is at ${facts.listing.reallyAt}`;

/** A new repository, or a new version of a waiting one. */
function wait(context: AnnouncementCase, archive: CatalogueRow["archive"]): Verdict {
  const { event, facts, source, nowSeconds, config } = context;
  const { waiting, name, row } = facts;
  if (waiting?.phase !== "waiting") {
    if (facts.waitingOfKey >= config.purgatoryMaxAnnouncementsPerKey) return tooMany(context);
    if (facts.waitingInAll >= config.purgatoryMaxAnnouncements) {
      return refused(
        "waiting-room",
        "waiting-room-full",
        "too many new repositories are waiting: try later",
        record(context),
      );
    }
  }
  if (!facts.hasRoom) return waitingRoomFull(record(context));
  // A soft coordinate that a client asks for again starts afresh; sync alone does not keep it alive.
  const revives = waiting?.phase === "soft" && source.type === "client";
  const firstWaited = waiting && !revives ? waiting.firstWaited : nowSeconds;
  const deadline = announcementDeadline(firstWaited, nowSeconds, config);
  const entry = newEntry({
    kind: "announcement",
    event,
    source,
    nowSeconds,
    deadline,
    firstWaited,
    repositories: [repositoryAddress(name)],
  });
  const changed: CatalogueRow = { ...(row ?? newRepositoryRow(name, nowSeconds)), archive };
  const after: Change[] = [
    { type: "catalogue", row: withStatus(changed, deadline.phase, nowSeconds) },
    { type: "listings", name },
    ...(facts.left ? [{ type: "forget-left", name } as const] : []),
    ...removals(facts.ifCounting),
  ];
  const where = whereItIs(context);
  return held(archive ? "archive" : "announcement", entry, waiting === undefined, record(context), {
    changes: [
      ...facts.giveWay.map((id) => ({ type: "unhold", id, cause: "evicted" }) as const),
      ...(waiting ? [{ type: "unhold", id: waiting.id, cause: "replaced" } as const] : []),
    ],
    after,
    repositories: placeOnDisk(context, deadline.phase),
    concerned: facts.ifCounting.concerned,
    ...(where === undefined ? {} : { message: `${purgatoryMessage}; ${where}` }),
  });
}

function placeOnDisk({ facts }: AnnouncementCase, phase: "waiting" | "soft"): RepositoryChange[] {
  if (phase === "waiting") return [{ name: facts.name, to: "create" }];
  return facts.row?.status === "waiting" ? [{ name: facts.name, to: "remove" }] : [];
}

const tooMany = (context: AnnouncementCase): Verdict =>
  refused(
    "waiting-room",
    "too-many-waiting",
    `this key has ${context.config.purgatoryMaxAnnouncementsPerKey} repositories waiting for git data: push to them first`,
    record(context),
  );

/** Neither lists us nor is mirrored: kept for its author's sake, or the end of something, or nothing to us. */
function notHosted(context: AnnouncementCase): Verdict {
  const { event, facts, nowSeconds, config } = context;
  const { name, row, waiting, listing } = facts;
  const listsUs = listing.inClone && listing.inRelays;
  // A mirror is not here because it is listed, so being listed does not keep it either.
  const lost = !listsUs || (row?.archive ?? null) !== null;
  const ending = waiting ? endOfWait(waiting, name, row, "withdrawn", nowSeconds) : undefined;
  const endWait = ending?.changes ?? [];
  const gone = ending?.repositories ?? [];
  const hasRepository = row?.status === "served" || row?.status === "archived" || row?.status === "leaving";
  if (row && hasRepository && lost) {
    return {
      ok: true,
      action: "leave",
      rule: "un-hosting",
      facts: { ...record(context), lapsed: facts.ifLeaving.lapsed.map((lapse) => lapse.id) },
      message: row.archive
        ? "this repository is no longer mirrored here: it is read-only and will be removed later"
        : "this version no longer lists this service: the repository is read-only here and will be removed later",
      name,
      changes: [
        { type: "catalogue", row: withStatus(row, "leaving", nowSeconds) },
        { type: "listings", name },
        ...removals(facts.ifLeaving),
        ...removals(facts.ifCounting),
      ],
      repositories: row.status === "leaving" ? [] : [{ name, to: "leave" }],
      concerned: facts.ifLeaving.concerned,
    };
  }
  if (facts.exceptionOwner !== undefined && !listsUs) {
    return stored("maintainer-exception", record(context), {
      changes: [...endWait, { type: "listings", name }, ...removals(facts.ifCounting)],
      repositories: gone,
      concerned: facts.ifCounting.concerned,
    });
  }
  if (waiting && lost) {
    return {
      ok: true,
      action: "lapse",
      rule: "un-hosting",
      facts: record(context),
      message: row?.archive
        ? "this repository is no longer to be mirrored here"
        : "this version no longer lists this service: the repository no longer waits here",
      name,
      lapsed: waiting.id,
      changes: [
        ...endWait,
        { type: "remember-left", name, by: event, until: nowSeconds + config.purgatoryRememberSecs },
        { type: "listings", name },
        ...removals(facts.ifLapsing),
      ],
      repositories: gone,
      concerned: facts.ifLapsing.concerned,
    };
  }
  if (listsUs) {
    return refused(
      "repository-list",
      "not-whitelisted",
      "this server hosts only repositories on its list",
      record(context),
    );
  }
  const advice = listingAdvice(listing, context.services);
  return refused(
    "announcement",
    "service-not-listed",
    `the announcement does not list this service: ${advice}`,
    record(context),
  );
}
