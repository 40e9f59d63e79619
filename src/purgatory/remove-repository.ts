// A repository's directory goes only while the catalogue wants none. Rows change in the store first and directories after
// them: whoever announces it again in between must find it, and so must data that has a grace of its own.

import { type CatalogueRow, catalogueRow, type RepositoryName } from "../catalogue/repositories.js";
import { diskAddress } from "../git/address.js";
import type { Repositories } from "../git/repositories.js";
import type { Store } from "../store/port.js";

/** Soft ones have no directory, except where one was served once (deleted, announced again): that data is kept. */
export const wantsNoDirectory = (row: CatalogueRow | undefined): boolean =>
  row === undefined || (row.status === "soft" && row.governing === null);

/** False: it is wanted again. */
export function removeRepository(store: Store, repositories: Repositories, name: RepositoryName): Promise<boolean> {
  return repositories.delete(diskAddress(name), async () => wantsNoDirectory(await catalogueRow(store, name)));
}
