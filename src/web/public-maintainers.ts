// Who maintains a repository, as everybody can work it out: by served announcements alone. What waits is never read here
// (threats row 31).

import { setImmediate as nextTurn } from "node:timers/promises";
import type { MaintainerSet } from "../catalogue/maintainer-set.js";
import { asksForAnswers, maintainerSet } from "../catalogue/maintainers.js";
import type { RepositoryName } from "../catalogue/repositories.js";
import { kinds, tagValue } from "../nostr/event.js";
import type { Reader } from "../store/port.js";

export async function publicMaintainers(store: Reader, name: RepositoryName): Promise<MaintainerSet> {
  return await maintainerSet(
    {
      mutual: () => asksForAnswers(store),
      async announcementsOf(pubkey, identifier) {
        // A hundred announcements of a megabyte each are read one by one, with others' requests between them.
        await nextTurn();
        const stored = await store.latest({ kind: kinds.announcement, pubkey, identifier });
        return stored && tagValue(stored.event, "d") === identifier ? [stored.event] : [];
      },
    },
    name,
  );
}
