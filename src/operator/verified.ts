// What `sync verify` answers, and what of it is remembered for the pages: when each copy was last found to be the same.

import { type RepositoryName, repositoryAddress } from "../catalogue/repositories.js";
import { servicePart } from "../net/url.js";

/** `not compared` counts as a difference: nobody knows. `ignored`: the operator has it left alone. */
export type Standing = "same" | "differs" | "not compared" | "ignored";

export interface ComparedRef {
  readonly ref: string;
  /** null: not there. */
  readonly here: string | null;
  readonly there: string | null;
}

export interface GitCopy {
  readonly url: string;
  readonly standing: Standing;
  /** Branches and tags that are there. */
  readonly refs: number;
  readonly differing: number;
  /** The first of them. */
  readonly differences: readonly ComparedRef[];
  readonly reason: string | null;
}

export interface RelayCopy {
  readonly relay: string;
  readonly standing: Standing;
  /** Served there; neither here, nor held, nor refused here. */
  readonly missingHere: number;
  readonly missingThere: number;
  /** Served there, held here until its git data comes. */
  readonly waitingHere: number;
  /** `read`: page by page, because the relay does not reconcile. */
  readonly method: "negentropy" | "read" | null;
  readonly reason: string | null;
}

export interface Verified {
  readonly repository: string;
  /** Unix seconds. */
  readonly at: number;
  readonly relays: readonly RelayCopy[];
  readonly gitServers: readonly GitCopy[];
}

export const isSame = ({ relays, gitServers }: Verified): boolean =>
  [...relays, ...gitServers].every(({ standing }) => standing === "same" || standing === "ignored");

const maxRepositories = 5_000;
const placeOf = (url: string): string => servicePart(url) ?? url;

/** Since the server started; the repositories compared last are kept. */
export class VerifiedCopies {
  readonly #clean = new Map<string, Map<string, number>>();

  note(name: RepositoryName, { at, relays, gitServers }: Verified): void {
    const key = repositoryAddress(name);
    const clean = this.#clean.get(key) ?? new Map<string, number>();
    // What a relay lacks is its own affair: nothing is missing here.
    for (const { relay, method, missingHere } of relays) if (method && missingHere === 0) clean.set(placeOf(relay), at);
    for (const { url, standing } of gitServers) if (standing === "same") clean.set(placeOf(url), at);
    this.#clean.delete(key);
    this.#clean.set(key, clean);
    const [oldest] = this.#clean.keys();
    if (this.#clean.size > maxRepositories && oldest !== undefined) this.#clean.delete(oldest);
  }

  /** Unix seconds at which the copy at that URL, however it is spelt, was last compared clean. */
  lastClean(name: RepositoryName, url: string): number | undefined {
    return this.#clean.get(repositoryAddress(name))?.get(placeOf(url));
  }
}
