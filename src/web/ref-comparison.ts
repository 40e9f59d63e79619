// The signed state beside what is held, ref by ref: pure. Only branches and tags are a state's to decide.

import type { StateRef } from "../nostr/nip34.js";

export type Standing =
  | "equal"
  /** Held at another commit than signed. */
  | "differs"
  /** Signed, not held. */
  | "missing"
  /** Held, not signed. */
  | "unsigned";

export interface ComparedRef {
  readonly name: string;
  readonly kind: "branch" | "tag";
  readonly signed: string | undefined;
  readonly held: string | undefined;
  readonly standing: Standing;
}

/** `none`: nothing has been signed yet. `partial`: what is held is as signed, but something signed is not here. */
export type OverallStanding = "in line" | "partial" | "differs" | "none";

export interface Comparison {
  readonly refs: readonly ComparedRef[];
  readonly overall: OverallStanding;
}

// Made once: a comparison of texts that makes its own takes a hundred times as long.
const byName = new Intl.Collator("en", { numeric: true });

const heads = "refs/heads/";
const tags = "refs/tags/";

function standingOf(signed: string | undefined, held: string | undefined): Standing {
  if (held === undefined) return "missing";
  if (signed === undefined) return "unsigned";
  return signed === held ? "equal" : "differs";
}

/** `signed` undefined: no state governs. Branches first, the head among them first, then by name. */
export function compareRefs(
  signed: readonly StateRef[] | undefined,
  held: ReadonlyMap<string, { readonly oid: string }>,
  head: string,
): Comparison {
  const wanted = new Map((signed ?? []).map(({ name, value }) => [name, value]));
  const names = new Set([...wanted.keys(), ...held.keys()]);
  const refs: ComparedRef[] = [];
  for (const name of names) {
    const kind = name.startsWith(heads) ? "branch" : name.startsWith(tags) ? "tag" : undefined;
    if (!kind) continue;
    const [signedOid, heldOid] = [wanted.get(name), held.get(name)?.oid];
    const short = name.slice(kind === "branch" ? heads.length : tags.length);
    refs.push({ name: short, kind, signed: signedOid, held: heldOid, standing: standingOf(signedOid, heldOid) });
  }
  const rank = ({ kind, name }: ComparedRef): number => (kind === "tag" ? 2 : `${heads}${name}` === head ? 0 : 1);
  refs.sort((a, b) => rank(a) - rank(b) || byName.compare(a.name, b.name));
  return { refs, overall: signed === undefined ? "none" : overallOf(refs) };
}

function overallOf(refs: readonly ComparedRef[]): OverallStanding {
  if (refs.some(({ standing }) => standing === "differs" || standing === "unsigned")) return "differs";
  return refs.some(({ standing }) => standing === "missing") ? "partial" : "in line";
}
