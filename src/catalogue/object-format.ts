// In which format a repository's objects are named when it is made (git-http.md, "SHA-256 repositories"): its row says so;
// one under `/prs/`, which nothing announces, takes the format of what it contributes to.

import type { ObjectFormat } from "../nostr/nip34.js";
import type { TableReader } from "../store/port.js";
import { announcersOf } from "./maintainers.js";
import { catalogueRow, fixedFormat, isReleased, type RepositoryName } from "./repositories.js";

/** Strangers may announce the same identifier: so many of them are looked at. */
const maxAnnouncers = 100;

export async function wantedFormat(reader: TableReader, name: RepositoryName): Promise<ObjectFormat> {
  if (name.area !== "prs") return (await catalogueRow(reader, name))?.format ?? "sha1";
  const hosted = new Set<ObjectFormat>();
  for (const owner of await announcersOf(reader, name.identifier, maxAnnouncers)) {
    const other = await catalogueRow(reader, { owner, identifier: name.identifier });
    const format = other && isReleased(other) ? fixedFormat(other) : undefined;
    if (format) hosted.add(format);
  }
  // Where both are hosted under one identifier, nothing says which of them is meant.
  return hosted.size === 1 && hosted.has("sha256") ? "sha256" : "sha1";
}
