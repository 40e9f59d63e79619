// What lets a client transfer one large file without being asked again who it is: signed by this process, for one repository,
// file, size and direction, for an hour. It stands in the query of the address that a batch answer gives: in a header it
// would meet the client's own Authorization, and two of them are refused. Pure but for the key.

import { createHmac, timingSafeEqual } from "node:crypto";
import type { LargeFileId } from "../catalogue/large-files.js";
import { type RepositoryName, repositoryKey } from "../catalogue/repositories.js";

export const ticketSeconds = 3_600;

/** `owners`: into the repository's quotas. `strangers`: like an unclaimed push. */
export type TicketUse = "download" | "upload-owners" | "upload-strangers";

export interface Ticket {
  readonly use: TicketUse;
  readonly name: RepositoryName;
  readonly oid: LargeFileId;
  readonly size: number;
  /** Second from which it is no longer good. */
  readonly ends: number;
}

export class Tickets {
  constructor(private readonly key: Uint8Array) {}

  /** Query of an address. */
  write(ticket: Ticket): string {
    const { use, size, ends } = ticket;
    return new URLSearchParams({ use, size: String(size), ends: String(ends), proof: this.#proof(ticket) }).toString();
  }

  /** Undefined: it is not ours, not for this, or over. */
  read(query: URLSearchParams, name: RepositoryName, oid: LargeFileId, nowSeconds: number): Ticket | undefined {
    const use = query.get("use");
    const [size, ends] = [Number(query.get("size")), Number(query.get("ends"))];
    if (use !== "download" && use !== "upload-owners" && use !== "upload-strangers") return undefined;
    const ticket: Ticket = { use, name, oid, size, ends };
    const given = Buffer.from(query.get("proof") ?? "", "latin1");
    const proof = Buffer.from(this.#proof(ticket), "latin1");
    const isOurs = given.length === proof.length && timingSafeEqual(given, proof);
    return isOurs && ends > nowSeconds ? ticket : undefined;
  }

  #proof({ use, name, oid, size, ends }: Ticket): string {
    const text = JSON.stringify([use, repositoryKey(name), oid, size, ends]);
    return createHmac("sha256", this.key).update(text).digest("base64url");
  }
}
