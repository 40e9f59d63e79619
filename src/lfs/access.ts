// Who may bring large files where, and how much: asked of the rest of the server before anything is written (git-http.md,
// "Large files"; threats.md row 19).

import type { GitAccess } from "../access/git-access.js";
import { type Clock, unixSeconds } from "../base/clock.js";
import { isRepositoryBlocked } from "../catalogue/bans-and-lists.js";
import { type LargeFileRow, largeFile } from "../catalogue/large-files.js";
import { maintainersOf } from "../catalogue/maintainers.js";
import { catalogueRow, type RepositoryName } from "../catalogue/repositories.js";
import type { Config } from "../config/config.js";
import type { GitPath, RepositoryAddress } from "../git/address.js";
import type { FoundRepository } from "../git/http-types.js";
import type { Pubkey } from "../nostr/event.js";
import { parseNpub } from "../nostr/nip19.js";
import type { Purgatory } from "../purgatory/purgatory.js";
import { readOnlyReason } from "../purgatory/pushes.js";
import { accountsOf, type QuotaLeft, quotaLeft } from "../purgatory/quotas.js";
import type { Store } from "../store/port.js";
import type { UploadFacts, WantedFile } from "./batch.js";
import type { Holdings } from "./holdings.js";

export interface Uploader {
  readonly isKnown: boolean;
  /** Of the maintainer set, or with a token that may push. */
  readonly isOwners: boolean;
  /** False for a token that may only read. */
  readonly mayPush: boolean;
}

const stranger: Uploader = { isKnown: false, isOwners: false, mayPush: true };

interface GateParts {
  readonly purgatory: Purgatory;
  readonly holdings: Holdings;
  /** The check of credentials that git's own requests pass too. */
  readonly access: GitAccess;
  readonly config: () => Config;
  /** Nothing is told to whoever is not known. */
  readonly isPrivate: boolean;
}

export class UploadGate {
  /** Bytes of files that are being received into a key's quotas. */
  readonly #coming = new Map<Pubkey, number>();

  constructor(private readonly parts: GateParts) {}

  get isPrivate(): boolean {
    return this.parts.isPrivate;
  }

  get store(): Store {
    return this.parts.purgatory.context.store;
  }

  get limits(): { readonly clock: Clock; readonly gitIdleSecs: number } {
    return { clock: this.parts.purgatory.context.clock, gitIdleSecs: this.parts.config().gitIdleSecs };
  }

  lookUp({ npub, identifier, area }: GitPath): Promise<FoundRepository | undefined> {
    return this.parts.purgatory.lookUp(npub, identifier, area);
  }

  /** `unknown`: credentials were shown, or are needed, and say nothing. */
  async identify(
    authorization: string | undefined,
    path: GitPath,
    ip: string,
  ): Promise<Uploader | "unknown" | "too-many"> {
    if (authorization === undefined) return this.parts.isPrivate ? "unknown" : stranger;
    const identity = await this.parts.access.identify(authorization, path, ip);
    if (!identity.ok) return identity.reason;
    const { pubkey, via, mayPush } = identity.caller;
    const isOwners = mayPush && (via === "token" || (await this.#isMaintainer(path, pubkey)));
    return { isKnown: true, isOwners, mayPush };
  }

  async #isMaintainer({ npub, identifier, area }: GitPath, pubkey: Pubkey): Promise<boolean> {
    const owner = parseNpub(npub);
    if (!owner) return false;
    if (area === "prs") return owner === pubkey;
    return (await maintainersOf(this.store, { owner, identifier })).has(pubkey);
  }

  /** Nobody may bring anything there now. */
  async closedReason(
    found: FoundRepository,
  ): Promise<{ readonly status: number; readonly message: string } | undefined> {
    const { disks, contributorRules } = this.parts.purgatory.context;
    const lists = contributorRules?.lists();
    const { address } = found;
    if (disks.fullest >= this.parts.config().diskPushMaxPercent / 100) {
      return { status: 507, message: "the server's disk is nearly full, it takes no files now: try again later" };
    }
    if (address.area === "prs") {
      const isBlocked = !lists || (await isRepositoryBlocked(this.store, lists, address));
      return isBlocked ? { status: 403, message: "files of this key or name are not wanted here" } : undefined;
    }
    const reason = found.readOnlyReason ?? readOnlyReason(await catalogueRow(this.store, address), this.parts.config());
    return reason === undefined ? undefined : { status: 403, message: reason };
  }

  /** What one request by somebody unknown may bring; undefined: nothing more now. */
  strangersBytes(name: RepositoryName, ip: string, request: string): number | undefined {
    const { placeholders, context } = this.parts.purgatory;
    return placeholders.filesAllowance(ip, name, `large files ${request}`, unixSeconds(context.clock));
  }

  /** For the files of one request, one after the other: what is granted to one is not there for the next. */
  uploadsTo(
    name: RepositoryName,
    { isOwners }: Uploader,
    strangersBytes: () => number | undefined,
  ): (file: WantedFile) => Promise<UploadFacts> {
    const { holdings } = this.parts;
    let granted = 0;
    let strangers: { readonly bytes: number | undefined } | undefined;
    return async (file) => {
      const row = await largeFile(this.store, name, file.oid);
      const quota = await this.#quota(name, row);
      const isForOwners = isOwners || row?.isNamed === true;
      if (!isForOwners && !row) strangers ??= { bytes: strangersBytes() };
      const rest = strangers?.bytes === undefined ? undefined : Math.max(0, strangers.bytes - granted);
      const leftBytes = quota.isUsedUp ? 0 : Math.max(0, quota.maxBytes - granted);
      const unclaimedBytes = holdings.unclaimedBytes(name, file.oid);
      if (!row?.isHere && unclaimedBytes === undefined) granted += file.size;
      const { reason } = quota;
      return { file, row, unclaimedBytes, isOwners, quota: { leftBytes, reason }, strangersBytes: rest };
    };
  }

  /**
   * Asked again when the file comes: other files may have come since it was granted. Those that are on their way count as
   * well, because each of many at once would find the same room. Answers how to give the room back, or why there is none.
   */
  async roomFor(name: RepositoryName, { oid, size }: WantedFile): Promise<(() => void) | string> {
    const row = await largeFile(this.store, name, oid);
    const quota = await this.#quota(name, row);
    const whose = row?.contributor ?? name.owner;
    const change = (bytes: number): void => {
      const coming = (this.#coming.get(whose) ?? 0) + bytes;
      if (coming > 0) this.#coming.set(whose, coming);
      else this.#coming.delete(whose);
    };
    if (quota.isUsedUp || quota.maxBytes < (this.#coming.get(whose) ?? 0) + size) return quota.reason;
    change(size);
    return () => change(-size);
  }

  /** A file that only a stranger's pull request names is booked to the stranger. */
  async #quota(name: RepositoryName, row: LargeFileRow | undefined): Promise<QuotaLeft> {
    const { archiveBudget } = this.parts.purgatory;
    const authors = row?.contributor === undefined ? undefined : [row.contributor];
    return quotaLeft(await accountsOf(this.store, name, authors, this.parts.config(), archiveBudget));
  }

  /** While the work runs the repository stays; one under `/prs/` is made for it. */
  async during(found: FoundRepository, work: () => Promise<void>): Promise<void> {
    const { purgatory } = this.parts;
    const { repositories } = purgatory.context;
    const address: RepositoryAddress = found.address;
    const end = purgatory.pushBegins(address);
    try {
      await repositories.whileUsed(address, async () => {
        if (found.createOnPush) await repositories.create(address);
        await work();
      });
    } finally {
      end();
      if (found.createOnPush) await repositories.removeIfEmpty(address);
    }
  }
}
