// Who decides in a repository and why, as operators read it: `repos show`, `why` and `/api`. Announcements that wait count
// here as they do for pushes, so none of this is for strangers.

import { type MaintainerSet, type Standing, standingText } from "../catalogue/maintainer-set.js";
import { maintainerSet, repositoriesTrusting, storedAuthority } from "../catalogue/maintainers.js";
import { type RepositoryName, takesStates } from "../catalogue/repositories.js";
import type { Pubkey } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import type { Reader } from "../store/port.js";
import { repositoryText } from "./naming.js";

export interface MaintainerStanding {
  readonly npub: string;
  /** Whether states of this key count. */
  readonly decides: boolean;
  /** The standing's name, the same in every answer. */
  readonly as: Standing["as"];
  readonly because: string;
}

const standingOf = (key: Pubkey, standing: Standing): MaintainerStanding => ({
  npub: npubOf(key),
  decides: standing.decides,
  as: standing.as,
  because: standingText(standing, npubOf),
});

/** Everybody that the announcements of a repository's maintainers name: who decides first. */
export async function standingsOf(reader: Reader, name: RepositoryName): Promise<readonly MaintainerStanding[]> {
  const { standings } = await maintainerSet(storedAuthority(reader), name);
  const all = [...standings].map(([key, standing]) => standingOf(key, standing));
  return [...all.filter(({ decides }) => decides), ...all.filter(({ decides }) => !decides)];
}

export const standingSentence = ({ npub, decides, because }: MaintainerStanding): string =>
  `${npub} ${decides ? "is a maintainer" : "is not a maintainer"}: it ${because}`;

const repositoriesTold = 5;

/** How the author of a state stands in the repositories of that identifier that know the key. */
export async function authorSentences(reader: Reader, author: Pubkey, identifier: string): Promise<readonly string[]> {
  const view = storedAuthority(reader);
  const knows = ({ standings }: MaintainerSet): boolean => standings.has(author);
  const found = await repositoriesTrusting(view, author, identifier, repositoriesTold, takesStates, knows);
  const sentences: string[] = [];
  for (const repository of found) {
    const standing = (await maintainerSet(view, repository)).standings.get(author);
    if (!standing) continue;
    const { decides, because } = standingOf(author, standing);
    const place = repositoryText({ owner: repository.owner, identifier });
    sentences.push(`its author ${decides ? "decides" : "does not decide"} in ${place}: the key ${because}`);
  }
  return sentences;
}
