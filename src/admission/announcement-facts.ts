// Reads what the announcement rule decides on.

import { isWhitelisted } from "../catalogue/bans-and-lists.js";
import { type LeftRepository, leftRepository } from "../catalogue/decisions.js";
import { storedAuthority } from "../catalogue/maintainers.js";
import { type CatalogueRow, catalogueRow, isReleased, type RepositoryName } from "../catalogue/repositories.js";
import { type WaitingEntry, waitingAnnouncement, waitingAnnouncementsOf, waitingTotals } from "../catalogue/waiting.js";
import { type EventId, kinds, type NostrEvent, type Pubkey, type VerifiedEvent } from "../nostr/event.js";
import type { Announcement } from "../nostr/nip34.js";
import { ownerNaming } from "./maintainer-exception.js";
import { type MembershipChange, membershipChange } from "./membership.js";
import { cloneUrlsOnHosts, httpCloneUrls, type ServiceListing, serviceListing } from "./service.js";
import type { AdmissionSettings } from "./settings.js";
import type { AdmissionContext } from "./verdict.js";
import { roomFor } from "./waiting-capacity.js";

export interface AnnouncementFacts {
  readonly name: RepositoryName;
  readonly listing: ServiceListing;
  readonly blacklisted: boolean;
  readonly whitelisted: boolean;
  /** Archive rules match; only these URLs are hunted. */
  readonly archiveUrls: readonly string[] | undefined;
  readonly row: CatalogueRow | undefined;
  readonly stored: { readonly id: EventId; readonly created_at: number } | undefined;
  readonly waiting: WaitingEntry | undefined;
  readonly left: LeftRepository | undefined;
  /** The owner of a released repository whose maintainers name the author; only asked when nothing better applies. */
  readonly exceptionOwner: Pubkey | undefined;
  /** What follows for maintainer sets when this version counts, when its repository leaves with it, and when it only ends a wait. */
  readonly ifCounting: MembershipChange;
  readonly ifLeaving: MembershipChange;
  readonly ifLapsing: MembershipChange;
  readonly waitingOfKey: number;
  readonly waitingInAll: number;
  readonly hasRoom: boolean;
  readonly giveWay: readonly EventId[];
}

export async function readAnnouncementFacts(
  event: VerifiedEvent,
  announcement: Announcement,
  { reader, nowSeconds }: AdmissionContext,
  settings: AdmissionSettings,
): Promise<AnnouncementFacts> {
  const lists = settings.lists();
  const config = settings.config();
  const name = { owner: announcement.owner, identifier: announcement.identifier };
  const isBlocked = (other: RepositoryName): boolean => lists.repositoryBlacklist.has(other);
  const listing = serviceListing(announcement, settings.services);
  const whitelisted = isWhitelisted(lists, name);
  const archiveUrls = archiveUrlsOf(announcement, name, settings);
  const row = await catalogueRow(reader, name);
  const latest = await reader.latest({ kind: kinds.announcement, pubkey: name.owner, identifier: name.identifier });
  const hostedAsIs = (listing.inClone && listing.inRelays && whitelisted) || archiveUrls !== undefined;
  const exceptionOwner =
    hostedAsIs || !whitelisted || isBlocked(name)
      ? undefined
      : await ownerNaming(storedAuthority(reader), name, isBlocked);
  const waiting = await waitingAnnouncement(reader, name);
  const leaving: CatalogueRow | undefined = row && { ...row, status: "leaving" };
  const after = (next: CatalogueRow | undefined, announcements: readonly NostrEvent[] = [event]) =>
    membershipChange(reader, [{ name, announcements, row: next }], isBlocked);
  const ifCounting = await after(row);
  const room = await roomFor(reader, event.pubkey, Buffer.byteLength(event.raw), config);
  return {
    name,
    listing,
    blacklisted: isBlocked(name),
    whitelisted,
    archiveUrls,
    row,
    stored: latest && { id: latest.event.id, created_at: latest.event.created_at },
    waiting,
    left: await leftRepository(reader, name, nowSeconds),
    exceptionOwner,
    ifCounting,
    ifLeaving: !hostedAsIs && isReleased(row) ? await after(leaving) : ifCounting,
    ifLapsing: !hostedAsIs && waiting ? await after(undefined, latest ? [latest.event] : []) : ifCounting,
    waitingOfKey: await waitingAnnouncementsOf(reader, event.pubkey, config.purgatoryMaxAnnouncementsPerKey),
    waitingInAll: (await waitingTotals(reader)).waitingAnnouncements,
    hasRoom: room.ok,
    giveWay: room.ok ? room.giveWay : [],
  };
}

function archiveUrlsOf(
  announcement: Announcement,
  name: RepositoryName,
  settings: AdmissionSettings,
): readonly string[] | undefined {
  const archive = settings.archive();
  if (archive.all || archive.whitelist.has(name)) return httpCloneUrls(announcement);
  const urls = cloneUrlsOnHosts(announcement, archive.serviceHosts);
  return urls.length > 0 ? urls : undefined;
}
