// Machine tokens (GRASP-08): `tokens add|list|revoke`. A token belongs to a member and ends with the membership; it is shown
// once, when it is made, and only its hash is kept.

import { randomBytes } from "node:crypto";
import { unixSeconds } from "../base/clock.js";
import { isOver, newToken, putToken, type TokenRight, type TokenRow, tokenRows } from "../catalogue/machine-tokens.js";
import { type RepositoryName, repositoryAddress, repositoryNamed } from "../catalogue/repositories.js";
import type { Pubkey } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import { type AdminParts, type Caller, done, noteChange, type Outcome, refusal } from "./context.js";
import { repositoryText } from "./naming.js";

export interface ListedToken {
  readonly id: string;
  readonly member: string;
  readonly right: TokenRight;
  /** `npub/identifier`; null: all. */
  readonly repository: string | null;
  readonly since: number;
  readonly ends: number | null;
  readonly note: string;
  /** Whether it opens anything now: its time is not over, and the key is a member's and not kept out. */
  readonly works: boolean;
}

const daySeconds = 86_400;
const maxTokens = 10_000;

function nameOf(address: string | null): string | null {
  const name = address === null ? undefined : repositoryNamed(address);
  return name ? repositoryText(name) : null;
}

export async function addToken(
  { store, clock, members }: AdminParts,
  caller: Caller,
  asked: {
    readonly member: Pubkey;
    readonly push: boolean;
    readonly repository?: RepositoryName | undefined;
    readonly days?: number | undefined;
    readonly note: string;
  },
): Promise<Outcome<ListedToken & { readonly token: string }>> {
  const { member, push, repository, days, note } = asked;
  const target = npubOf(member);
  const all = members();
  if (all?.has(member) === false) {
    if (all.isKeptOut(member)) {
      return refusal("not-possible", `${target} is banned or blacklisted here: take that back first`);
    }
    return refusal("not-possible", `${target} is no member: add it first (lists add private-members)`);
  }
  const now = unixSeconds(clock);
  const { token, row } = newToken(
    {
      member,
      right: push ? "push" : "read",
      repository: repository ? repositoryAddress(repository) : null,
      since: now,
      ends: days === undefined ? null : now + days * daySeconds,
      note,
    },
    randomBytes,
  );
  const isWritten = await store.transact(async (tx) => {
    // Those whose time is over make room.
    const rows = await tokenRows(tx);
    for (const old of rows) if (isOver(old, now)) tx.deleteRow("tokens", old.id);
    if (rows.filter((old) => !isOver(old, now)).length >= maxTokens) return false;
    putToken(tx, row);
    await noteChange(tx, clock, caller, {
      what: `make a ${row.right} token`,
      target,
      reason: `${row.id} ${note}`.trim(),
    });
    return true;
  });
  if (!isWritten) return refusal("not-possible", `there are ${maxTokens} tokens: revoke some first`);
  return done({ ...listed(row, true), token });
}

export async function listTokens({ store, clock, members }: AdminParts): Promise<ListedToken[]> {
  const now = unixSeconds(clock);
  const all = members();
  const rows = (await tokenRows(store)).sort((a, b) => a.since - b.since);
  return rows.map((row) => listed(row, !isOver(row, now) && all?.has(row.member) !== false));
}

function listed({ id, member, right, repository, since, ends, note }: TokenRow, works: boolean): ListedToken {
  return { id, member: npubOf(member), right, repository: nameOf(repository), since, ends, note, works };
}

export async function revokeToken(
  { store, clock }: AdminParts,
  caller: Caller,
  id: string,
): Promise<Outcome<{ readonly id: string }>> {
  const revoked = await store.transact(async (tx) => {
    const row = await tx.row<TokenRow>("tokens", id);
    if (!row) return false;
    tx.deleteRow("tokens", id);
    await noteChange(tx, clock, caller, { what: "revoke a token", target: npubOf(row.member), reason: id });
    return true;
  });
  return revoked ? done({ id }) : refusal("unknown", `there is no token ${JSON.stringify(id)}: see \`tokens list\``);
}
