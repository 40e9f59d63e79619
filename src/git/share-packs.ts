// What repositories need where several machines share their packs; loaded only there.

import type { Sharing } from "./repositories.js";
import { SharedPacks, type SharedPacksParts } from "./shared-packs.js";
import { SharedRepositories } from "./shared-repositories.js";

export const sharing = (parts: SharedPacksParts): Sharing => ({
  packs: (host) => new SharedPacks(parts, host),
  repositories(context, host) {
    if (!context.packs) throw new Error("repositories without packs cannot be shared");
    return new SharedRepositories(context, context.packs, host);
  },
});
