// `/archive/<ref>.tar.gz` and `.zip`: a commit's files as git packs them, passed on as fast as they are taken, up to a bound.

import type { ServerResponse } from "node:http";
import type { Clock } from "../../base/clock.js";
import { writeChunk } from "../../git/http-body.js";
import { isKnownTag, type RouteRequest } from "../../http/routes.js";
import { bytes, html } from "../html.js";
import { cloneUrl } from "../layout.js";
import { type Looking, type Shown, sorryPage } from "./looking.js";
import type { Place } from "./paths.js";
import { idleMs, rawHeaders } from "./raw.js";

const maxArchiveBytes = 500 * 2 ** 20;

const types = { "tar.gz": "application/gzip", zip: "application/zip" } as const;
export type ArchiveFormat = keyof typeof types;

/** The last suffix is the format, the rest the ref. */
export function archivedOf(segments: readonly Buffer[]): { ref: Buffer[]; format: ArchiveFormat } | undefined {
  const last = segments.at(-1)?.toString("latin1") ?? "";
  const format = last.endsWith(".tar.gz") ? "tar.gz" : last.endsWith(".zip") ? "zip" : undefined;
  const name = format && last.slice(0, -format.length - 1);
  return format && name ? { ref: [...segments.slice(0, -1), Buffer.from(name, "latin1")], format } : undefined;
}

/** What every file system and every header can hold. */
const plainName = (text: string): string =>
  text
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .slice(0, 80)
    .replace(/^[-.]+/, "") || "files";

/**
 * A download that ends in the middle says nothing. git stores files about as small as an archive has them, and tells that at
 * once; a repository that is smaller as a whole is not asked. Where that is not known, the stream itself finds out.
 */
async function isKnownTooLarge({ room, found, visitor }: Looking, { commit }: Place): Promise<boolean> {
  const { counters } = found.row;
  if (counters.bytes + counters.pullRequestBytes <= maxArchiveBytes) return false;
  const stored = await room.storedBytes(found.repository, commit, visitor);
  return stored.ok && stored.value > maxArchiveBytes;
}

function tooLargePage(looking: Looking, { inAddress }: Place): Shown {
  const address = cloneUrl(looking.site, looking.found.name);
  const sentence = html`The files of this commit take more than the ${bytes(maxArchiveBytes)} that an archive may have. Clone it instead: <code>git clone --depth 1 ${address}</code>.`;
  return sorryPage(looking, "code", inAddress, 403, "Too large for an archive", sentence);
}

/** Answers by itself; a value: nothing was sent yet. */
export async function sendArchive(
  looking: Looking,
  place: Place,
  format: ArchiveFormat,
  request: RouteRequest,
  response: ServerResponse,
  clock: Clock,
): Promise<Shown | "sent"> {
  const { room, found, visitor } = looking;
  const commit = await room.commit(found.repository, place.commit);
  if (!commit) return "missing";
  const label = place.kind === "commit" ? place.label.slice(0, 12) : place.label;
  const name = `${plainName(found.name.identifier)}-${plainName(label)}`;
  const tag = `"${place.commit}.${format}"`;
  const headers = {
    ...rawHeaders(tag, place.kind === "commit"),
    "Content-Type": types[format],
    "Content-Disposition": `attachment; filename="${name}.${format}"`,
  };
  if (isKnownTag(request.message.headers["if-none-match"], tag)) {
    response.writeHead(304, headers).end();
    return "sent";
  }
  if (await isKnownTooLarge(looking, place)) return tooLargePage(looking, place);
  if (request.method === "HEAD") {
    response.writeHead(200, headers).end();
    return "sent";
  }
  let sent = 0;
  const send = async (piece: Buffer): Promise<boolean> => {
    if (!response.headersSent) response.writeHead(200, headers);
    sent += piece.length;
    return sent <= maxArchiveBytes && (await writeChunk(response, piece, clock, idleMs));
  };
  const looked = await room.streams.archive(found.repository, place.commit, format, `${name}/`, visitor, send);
  if (!looked.ok) return looked.code;
  if (looked.value) response.end();
  // Broken off, so that nobody takes a part for the whole.
  else if (response.headersSent) response.destroy();
  else return "busy";
  return "sent";
}
