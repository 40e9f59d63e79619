// One fetch for a pull request that only GRASP-06 lets in: into its signer's `/prs/` repository, within the signer's
// quota. The repository is made for it and goes again if nothing came.

import type { RepositoryName } from "../catalogue/repositories.js";
import { diskAddress, underPrs } from "../git/address.js";
import { LauncherError } from "../git/launcher-job.js";
import type { EndedFetch, FetchCommand, FetchLeave } from "./core-driver.js";
import { fetchFromServer, type ServerFetchResult } from "./fetch-server.js";
import type { RunFetchParts } from "./run-fetch.js";

const nothing: ServerFetchResult = { arrived: [], refused: [], failure: "cancelled", bytes: 0 };

export async function runContributorFetch(
  { repositories, purgatory, server }: RunFetchParts,
  { url, ids, maxBytes, tooFewBytes }: FetchCommand,
  leave: FetchLeave,
  name: RepositoryName,
  trustRefs: boolean,
): Promise<EndedFetch> {
  const address = diskAddress(underPrs(name));
  const done = purgatory.pushBegins(address);
  try {
    const left = await purgatory.contributionLeft(name.owner);
    const result = await repositories
      .whileUsed(address, async () => {
        const repository = await repositories.create(address);
        const limits = { maxBytes: Math.min(maxBytes, left), tooFewBytes, trustRefs };
        return fetchFromServer(server, { url, ids, repository, ...limits, ...leave });
      })
      .catch((error: unknown) => {
        if (error instanceof LauncherError) return nothing;
        throw error;
      });
    const { arrived, bytes } = result;
    return { result, release: () => purgatory.contributed(name, arrived.length > 0 ? bytes : undefined, done) };
  } catch (error) {
    done();
    throw error;
  }
}
