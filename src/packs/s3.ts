// The pack store as a bucket of S3 or of a server that speaks like it. Large files go in parts; nothing is written under a
// condition, because not every such server knows how. Loaded only when the settings ask for it: its library is large.

import { open } from "node:fs/promises";
import { Readable } from "node:stream";
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandOutput,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  type S3ClientConfig,
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import type { BucketAccess } from "../config/cluster-place.js";
import {
  damagedMark,
  isAbsent,
  type Moved,
  markFile,
  markText,
  type PackStore,
  PackStoreError,
  readMark,
  type StoredFile,
  type StoredName,
  type StoreMark,
  storedName,
  unmarked,
} from "./port.js";
import { chunkBytes, pourInto, reading, Tally } from "./pour.js";
import { errorName, faultOfAnswer, statusOf, wordsFor } from "./s3-answers.js";
import { Silence } from "./silence.js";

const connectMs = 5_000;
/** Without a byte from the store. */
const usualSilentMs = 20_000;
const timedOut = "TimeoutError";
/** Each file under way has this many parts in memory. */
const partsAtOnce = 2;
const partBytes = 8 << 20;
/** The protocol allows 10,000. */
const mostParts = 9_000;

/** Which versions of Node this program runs under is said by its own documentation. */
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";

export class BucketPackStore implements PackStore {
  readonly words: string;
  readonly #client: S3Client;
  /** Asks whether the store answers: with connections of its own, those of the other may all be busy. */
  readonly #asker: S3Client;
  readonly #silence: Silence;
  readonly #bucket: string;
  /** A bucket is no mount: once it was seen to be ours, nothing empty takes its place unnoticed. */
  #isMarked = false;

  constructor({ bucket, region, endpoint, credentials }: BucketAccess, silentMs = usualSilentMs) {
    this.#bucket = bucket;
    this.words = endpoint === undefined ? `the bucket ${bucket}` : `the bucket ${bucket} at ${new URL(endpoint).host}`;
    const settings: S3ClientConfig = {
      region,
      // Servers of one's own rarely have a host name for each bucket.
      ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
      ...(credentials && { credentials }),
      requestHandler: { connectionTimeout: connectMs, socketTimeout: silentMs },
      // The caller compares SHA-256; servers that do not know newer checksums refuse them.
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
    };
    this.#client = new S3Client(settings);
    this.#asker = new S3Client({ ...settings, maxAttempts: 1 });
    this.#silence = new Silence((signal) => this.#answers(signal));
    // Below the library's retries, and around the requests of an upload in parts too.
    this.#client.middlewareStack.add(
      (next) => async (args) => {
        if (this.#silence.isSilent) throw this.#silent();
        const askedMs = performance.now();
        try {
          return await next(args);
        } catch (error) {
          if (errorName(error) !== timedOut) throw error;
          this.#silence.noticed();
          // No connection yet: another one may be had. A store that took the request and is silent is not asked again.
          throw performance.now() - askedMs < silentMs ? error : this.#silent();
        }
      },
      { step: "finalizeRequest", priority: "low" },
    );
  }

  async put(name: StoredName, file: string, signal?: AbortSignal): Promise<Moved> {
    signal?.throwIfAborted();
    if (!this.#isMarked) await this.#mustBeMarked();
    const source = await open(file, "r");
    let ownFault: unknown;
    try {
      const { size } = await source.stat();
      const tally = new Tally();
      const chunks = reading(
        source.createReadStream({ highWaterMark: chunkBytes, autoClose: false }),
        async (error) => (ownFault = error),
      );
      const upload = new Upload({
        client: this.#client,
        params: { Bucket: this.#bucket, Key: name, Body: Readable.from(tally.pass(chunks)) },
        partSize: Math.max(partBytes, Math.ceil(size / mostParts)),
        queueSize: partsAtOnce,
      });
      const abort = (): void => void upload.abort();
      signal?.addEventListener("abort", abort, { once: true });
      try {
        // It may have been given up while the file was opened.
        signal?.throwIfAborted();
        await this.#asking(upload.done());
      } finally {
        signal?.removeEventListener("abort", abort);
      }
      return tally.moved();
    } catch (error) {
      throw ownFault ?? error;
    } finally {
      await source.close();
    }
  }

  fetch(name: StoredName, file: string, signal?: AbortSignal): Promise<Moved> {
    return pourInto(
      file,
      async () => {
        const command = new GetObjectCommand({ Bucket: this.#bucket, Key: name });
        const { Body } = await this.#asking(this.#client.send(command, abortedBy(signal)), name);
        return reading(Body as Readable, (error) => this.#faultOf(error));
      },
      signal,
    );
  }

  async has(name: StoredName): Promise<boolean> {
    try {
      await this.#asking(this.#client.send(new HeadObjectCommand({ Bucket: this.#bucket, Key: name })), name);
      return true;
    } catch (error) {
      if (isAbsent(error)) return false;
      throw error;
    }
  }

  async *list(folder?: StoredName, signal?: AbortSignal): AsyncGenerator<StoredFile> {
    let next: string | undefined;
    do {
      const command = new ListObjectsV2Command({
        Bucket: this.#bucket,
        ...(folder !== undefined && { Prefix: `${folder}/` }),
        ...(next !== undefined && { ContinuationToken: next }),
      });
      const page = await this.#asking(this.#client.send(command, abortedBy(signal)));
      for (const { Key = "", Size = 0, LastModified } of page.Contents ?? []) {
        const name = storedName(Key);
        if (name) yield { name, bytes: Size, putMs: LastModified?.getTime() ?? 0 };
      }
      next = page.IsTruncated ? page.NextContinuationToken : undefined;
    } while (next !== undefined);
  }

  async remove(name: StoredName): Promise<void> {
    await this.#asking(this.#client.send(new DeleteObjectCommand({ Bucket: this.#bucket, Key: name })));
  }

  async removeUnfinished(beforeMs: number): Promise<number> {
    const Bucket = this.#bucket;
    let removed = 0;
    let after: { readonly KeyMarker?: string; readonly UploadIdMarker?: string } | undefined = {};
    while (after) {
      const page: ListMultipartUploadsCommandOutput = await this.#asking(
        this.#client.send(new ListMultipartUploadsCommand({ Bucket, ...after })),
      );
      for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
        if (!Key || !UploadId || (Initiated?.getTime() ?? 0) >= beforeMs) continue;
        await this.#asking(this.#client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId })));
        removed++;
      }
      const { NextKeyMarker: key, NextUploadIdMarker: id } = page;
      after = page.IsTruncated && key ? { KeyMarker: key, ...(id && { UploadIdMarker: id }) } : undefined;
    }
    return removed;
  }

  async mark(): Promise<StoreMark | undefined> {
    let text: string;
    try {
      const { Body } = await this.#client.send(new GetObjectCommand({ Bucket: this.#bucket, Key: markFile }));
      text = (await Body?.transformToString()) ?? "";
    } catch (error) {
      if (errorName(error) === "NoSuchKey") return undefined;
      throw await this.#faultOf(error);
    }
    const mark = readMark(text);
    if (!mark) throw damagedMark(this.words);
    return mark;
  }

  async setMark(mark: StoreMark): Promise<void> {
    const command = new PutObjectCommand({ Bucket: this.#bucket, Key: markFile, Body: markText(mark) });
    await this.#asking(this.#client.send(command));
  }

  async close(): Promise<void> {
    this.#silence.close();
    this.#client.destroy();
    this.#asker.destroy();
  }

  async #answers(signal: AbortSignal): Promise<boolean> {
    try {
      await this.#asker.send(new HeadBucketCommand({ Bucket: this.#bucket }), { abortSignal: signal });
      return true;
    } catch (error) {
      return !signal.aborted && errorName(error) !== timedOut;
    }
  }

  #silent(): PackStoreError {
    return new PackStoreError("unreachable", `${this.words} ${wordsFor("unreachable", timedOut)} (${timedOut})`);
  }

  async #mustBeMarked(): Promise<void> {
    this.#isMarked = false;
    if (!(await this.mark())) throw unmarked(this.words);
    this.#isMarked = true;
  }

  async #asking<T>(work: Promise<T>, name?: StoredName): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw await this.#faultOf(error, name);
    }
  }

  /** With a name, a missing object is `absent` if the bucket is ours: a HEAD does not tell which of the two is missing. */
  async #faultOf(error: unknown, name?: StoredName): Promise<unknown> {
    if (errorName(error) === "AbortError" || error instanceof PackStoreError) return error;
    // While the body of an answer came.
    if (errorName(error) === timedOut) this.#silence.noticed();
    const answer = { name: errorName(error), status: statusOf(error) };
    const fault = faultOfAnswer(answer);
    if (fault === "absent" && name !== undefined) {
      const lost = await this.#mustBeMarked().catch((found: unknown) => found);
      return lost ?? new PackStoreError("absent", `${this.words} has no ${name}`, { cause: error });
    }
    const said = answer.status === undefined ? answer.name : `${answer.status} ${answer.name}`;
    return new PackStoreError(fault, `${this.words} ${wordsFor(fault, answer.name)} (${said})`, { cause: error });
  }
}

const abortedBy = (signal: AbortSignal | undefined): { abortSignal?: AbortSignal } =>
  signal ? { abortSignal: signal } : {};
