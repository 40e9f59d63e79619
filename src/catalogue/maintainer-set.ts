// Who may decide in one owner's repository (grasp.md, "Who may decide"): what an announcement says about keys, and the
// set that follows from the announcements of one identifier. Pure: the walk asks for announcements, its caller reads them.
//
// The set is directed: it starts at the owner, or at the lead that the owner's announcement leads to, and follows what
// members say; what others say about the owner is never asked. An announcement with role tags (`M` lead, `m`
// co-maintainer, `o` moderator) only invites: whoever it names decides as soon as their own announcement names a member.
// A `maintainers` tag alone names members outright, as it always did, unless the server asks for answers everywhere.

import { isPubkey, type NostrEvent, type Pubkey, type Tag } from "../nostr/event.js";
import { announcementOf } from "../nostr/nip34.js";

export const maxMaintainers = 100;
export const maxMaintainerDepth = 10;
/** Keys whose announcements one walk reads: invitees cost a look each, and are no members. */
const maxKeysRead = 300;

/** Names of the tags this file reads. */
export const maintainerTags: readonly string[] = ["M", "m", "o", "maintainers"];

/** What one announcement says about who maintains its repository. No list contains its author. */
export interface Roles {
  readonly author: Pubkey;
  readonly hasRoleTags: boolean;
  /** Keys with an active `M`, the author among them; two are enough to know that they contradict each other. */
  readonly leads: readonly Pubkey[];
  /** Active `M` and `m`, or `maintainers` where there are no role tags, in tag order. */
  readonly deciders: readonly Pubkey[];
  /** Active `o`, and nothing more. */
  readonly moderators: readonly Pubkey[];
  /** Named by role tags none of which is active: over, left to others (`defer`), or malformed. */
  readonly ended: readonly Pubkey[];
  /** Its author has a role tag for themselves and no active `M` or `m` among them. */
  readonly departed: boolean;
}

const boundary = /^\d{1,15}$/;

/** Boundaries alternate: start, end, start, …; a role is active before the first and after each start. */
function isActive(boundaries: readonly string[]): boolean {
  const last = boundaries.length - 1;
  const isWellFormed = boundaries.every(
    (text, index) =>
      boundary.test(text) || (index === last && index % 2 === 1 && (text === "defer" || text === "open")),
  );
  return isWellFormed && (boundaries.length === 0 || boundaries.length % 2 === 1);
}

/** `["m", <key>, start, end, …]`. Anything without a key under these names (`["m","text/plain"]`) is no role tag. */
function roleOf([name, pubkey, ...boundaries]: Tag): { name: string; pubkey: Pubkey; active: boolean } | undefined {
  if ((name !== "M" && name !== "m" && name !== "o") || !isPubkey(pubkey)) return undefined;
  return { name, pubkey, active: isActive(boundaries) };
}

export function rolesOf(event: NostrEvent): Roles {
  const author = event.pubkey;
  const roles = event.tags.flatMap((tag) => roleOf(tag) ?? []);
  const hasRoleTags = roles.length > 0;
  const keys = (wanted: (role: (typeof roles)[number]) => boolean): Pubkey[] => [
    ...new Set(roles.filter(wanted).map(({ pubkey }) => pubkey)),
  ];
  const others = (list: readonly Pubkey[], ...not: readonly (readonly Pubkey[])[]): Pubkey[] => {
    const left = new Set([author, ...not.flat()]);
    return list.filter((key) => !left.has(key)).slice(0, maxMaintainers);
  };
  const deciding = keys(({ name, active }) => active && name !== "o");
  const moderating = keys(({ name, active }) => active && name === "o");
  return {
    author,
    hasRoleTags,
    leads: keys(({ name, active }) => active && name === "M").slice(0, 2),
    deciders: others(hasRoleTags ? deciding : (announcementOf(event)?.maintainers ?? [])),
    moderators: others(moderating, deciding),
    ended: others(
      keys(({ active }) => !active),
      deciding,
      moderating,
    ),
    departed: roles.some(({ pubkey }) => pubkey === author) && !deciding.includes(author),
  };
}

/** Everybody an announcement names for now; without its author. */
export const namedBy = ({ deciders, moderators }: Roles): readonly Pubkey[] => [...deciders, ...moderators];

/** Why a key is in the set, or is not. `by`: the member whose announcement says so. */
export type Standing =
  | { readonly decides: true; readonly as: "owner" | "lead" }
  | { readonly decides: true; readonly as: "listed"; readonly by: Pubkey }
  /** `names`: the member that the key's own announcement names. */
  | { readonly decides: true; readonly as: "confirmed"; readonly by: Pubkey; readonly names: Pubkey }
  | {
      readonly decides: false;
      readonly as: "invited" | "unanswered" | "moderator" | "ended" | "beyond-limits";
      readonly by: Pubkey;
    }
  | { readonly decides: false; readonly as: "departed" | "not-named-by-lead" | "lead-unknown" };

/** Where the walk began. `unknown-lead`: the owner's announcement leads to no lead, so the owner decides alone. */
export type Start = "owner" | "lead" | "unknown-lead" | "departed" | "unannounced";

export interface MaintainerSet {
  readonly start: Start;
  /** The set, in the order found: owner or lead first, then by distance. */
  readonly members: ReadonlySet<Pubkey>;
  /** Members, and whoever they name for now: their announcements are kept here (relay.md 2, maintainer exception). */
  readonly named: ReadonlySet<Pubkey>;
  /** Whose announcements were read: a change of any other changes nothing here. */
  readonly read: ReadonlySet<Pubkey>;
  /** What each member with an announcement names. */
  readonly names: ReadonlyMap<Pubkey, readonly Pubkey[]>;
  /** Of everybody the walk has met. */
  readonly standings: ReadonlyMap<Pubkey, Standing>;
}

/** Asks for what a key's newest announcement says. */
type Walk<T> = Generator<Pubkey, T, Roles | undefined>;

interface Candidate {
  readonly roles: Roles;
  readonly by: Pubkey;
  readonly depth: number;
}

class SetWalk {
  readonly #read = new Map<Pubkey, Roles | undefined>();
  readonly #members = new Map<Pubkey, number>();
  readonly #named = new Set<Pubkey>();
  readonly #names = new Map<Pubkey, readonly Pubkey[]>();
  readonly #standings = new Map<Pubkey, Standing>();
  /** Named by a member, with an announcement that names none yet: another who joins may be the one it names. */
  readonly #candidates = new Map<Pubkey, Candidate>();
  readonly #queue: Pubkey[] = [];
  #asksEverywhere: boolean;

  constructor(
    private readonly owner: Pubkey,
    mutual: boolean,
  ) {
    this.#asksEverywhere = mutual;
  }

  *walk(): Walk<MaintainerSet> {
    const own = yield* this.#rolesOf(this.owner);
    if (!own) return this.#result("unannounced");
    const seed = own.leads.length === 0 ? own : yield* this.#leadFrom(own);
    if (!seed) {
      for (const { leads } of this.#known()) for (const lead of leads) this.#named.add(lead);
      if (own.departed) this.#standings.set(this.owner, { decides: false, as: "departed" });
      else this.#join(this.owner, 0, { decides: true, as: "owner" });
      for (const key of namedBy(own)) this.#note(key, { decides: false, as: "lead-unknown" });
      if (!own.departed) this.#nameAll(own);
      return this.#result("unknown-lead");
    }
    if (seed.departed) {
      this.#standings.set(this.owner, { decides: false, as: "departed" });
      return this.#result("departed");
    }
    this.#asksEverywhere ||= seed.hasRoleTags;
    for (const { leads } of this.#known()) for (const lead of leads) this.#named.add(lead);
    const start = seed.author === this.owner ? "owner" : "lead";
    this.#join(seed.author, 0, { decides: true, as: start });
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) yield* this.#follow(next);
    if (!this.#members.has(this.owner)) {
      this.#note(this.owner, { decides: false, as: own.departed ? "departed" : "not-named-by-lead" });
    }
    return this.#result(start);
  }

  *#rolesOf(key: Pubkey): Walk<Roles | undefined> {
    if (!this.#read.has(key)) this.#read.set(key, yield key);
    return this.#read.get(key);
  }

  #known(): Roles[] {
    return [...this.#read.values()].flatMap((roles) => roles ?? []);
  }

  /** Exactly one active `M` at each step, until a key says it of itself. */
  *#leadFrom(own: Roles): Walk<Roles | undefined> {
    const seen = new Set<Pubkey>();
    let at = own;
    while (seen.size <= maxMaintainerDepth) {
      const [lead, another] = at.leads;
      if (lead === undefined || another !== undefined || seen.has(at.author)) return undefined;
      if (lead === at.author) return at;
      seen.add(at.author);
      const next = yield* this.#rolesOf(lead);
      if (!next) return undefined;
      at = next;
    }
    return undefined;
  }

  /** What was found first stays, unless it was said in passing only. */
  #note(key: Pubkey, standing: Standing): void {
    const known = this.#standings.get(key)?.as;
    if (known === undefined || known === "moderator" || known === "ended") this.#standings.set(key, standing);
  }

  #nameAll(roles: Roles): void {
    const names = namedBy(roles);
    for (const key of names) this.#named.add(key);
    this.#names.set(roles.author, roles.deciders);
  }

  #join(key: Pubkey, depth: number, standing: Standing): void {
    this.#members.set(key, depth);
    this.#named.add(key);
    this.#standings.set(key, standing);
    this.#candidates.delete(key);
    this.#queue.push(key);
    for (const [candidate, { roles, by, depth: theirs }] of [...this.#candidates]) {
      if (!roles.deciders.includes(key) || this.#isFull || !this.#candidates.has(candidate)) continue;
      this.#join(candidate, theirs, { decides: true, as: "confirmed", by, names: key });
    }
  }

  get #isFull(): boolean {
    return this.#members.size >= maxMaintainers;
  }

  /** Whom a member names: each joins, or is told apart by what is missing. */
  *#follow(member: Pubkey): Walk<void> {
    const roles = yield* this.#rolesOf(member);
    if (!roles) return;
    this.#nameAll(roles);
    const depth = (this.#members.get(member) ?? 0) + 1;
    const asks = this.#asksEverywhere || roles.hasRoleTags;
    for (const key of roles.deciders) {
      if (this.#members.has(key)) continue;
      if (depth > maxMaintainerDepth || this.#isFull || (this.#read.size >= maxKeysRead && !this.#read.has(key))) {
        this.#note(key, { decides: false, as: "beyond-limits", by: member });
        continue;
      }
      const theirs = yield* this.#rolesOf(key);
      if (theirs?.departed) this.#note(key, { decides: false, as: "departed" });
      else if (!asks) this.#join(key, depth, { decides: true, as: "listed", by: member });
      else if (!theirs) this.#note(key, { decides: false, as: "invited", by: member });
      else this.#answer(key, { roles: theirs, by: member, depth });
    }
    for (const [as, keys] of [["moderator", roles.moderators] as const, ["ended", roles.ended] as const]) {
      for (const key of keys)
        if (!this.#standings.has(key)) this.#standings.set(key, { decides: false, as, by: member });
    }
  }

  #answer(key: Pubkey, candidate: Candidate): void {
    const { roles, by, depth } = candidate;
    const names = roles.deciders.find((other) => this.#members.has(other));
    if (names !== undefined) {
      this.#join(key, depth, { decides: true, as: "confirmed", by, names });
      return;
    }
    this.#note(key, { decides: false, as: "unanswered", by });
    if (!this.#candidates.has(key)) this.#candidates.set(key, candidate);
  }

  #result(start: Start): MaintainerSet {
    return {
      start,
      members: new Set(this.#members.keys()),
      named: this.#named,
      read: new Set(this.#read.keys()),
      names: this.#names,
      standings: this.#standings,
    };
  }
}

/**
 * The set of `owner`'s repository. Yields a key, and is given what that key's newest announcement for the identifier says,
 * if it has one. `mutual`: also keys in a `maintainers` tag have to answer.
 */
export const maintainerWalk = (owner: Pubkey, mutual: boolean): Walk<MaintainerSet> =>
  new SetWalk(owner, mutual).walk();

/** One sentence about a standing, for pages and `why`; `text` names a key. */
export function standingText(standing: Standing, text: (key: Pubkey) => string): string {
  switch (standing.as) {
    case "owner":
      return "owns the repository";
    case "lead":
      return "is the lead that the owner's announcement names";
    case "listed":
      return `is listed by ${text(standing.by)}`;
    case "confirmed":
      return `was invited by ${text(standing.by)} and names ${text(standing.names)} in return`;
    case "invited":
      return `was invited by ${text(standing.by)} and has not announced the repository yet`;
    case "unanswered":
      return `was invited by ${text(standing.by)}, but its own announcement names no maintainer of this repository`;
    case "moderator":
      return `is a moderator named by ${text(standing.by)}: moderators decide no states`;
    case "ended":
      return `has no active role: ${text(standing.by)} says that it ended`;
    case "beyond-limits":
      return `is named by ${text(standing.by)}, beyond the ${maxMaintainers} keys or ${maxMaintainerDepth} steps that count`;
    case "departed":
      return "has left: its own announcement gives it no active role";
    case "not-named-by-lead":
      return "owns the repository, but the lead's announcement and those of its maintainers do not name it";
    case "lead-unknown":
      return "does not count: the owner's announcement names a lead, and following it ends at nobody who confirms to be the lead";
  }
}
