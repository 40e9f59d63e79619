// /admin/log: the last lines of the log, and new ones as they are written.

import type { ServerResponse } from "node:http";
import type { Clock } from "../../base/clock.js";
import type { LogRing, RecentLine } from "../../config/logging.js";
import { type Document, sendPlain } from "../../http/routes.js";
import { type Html, html } from "../html.js";
import { adminPage, type View } from "./frame.js";

const levelOf = (text: string): string | undefined => / (WARN|ERROR|FATAL) /.exec(text.slice(0, 40))?.[1];

export const isTrouble = ({ text }: RecentLine): boolean => levelOf(text) !== undefined;

export const logLines = (lines: readonly RecentLine[]): Html[] =>
  lines.map(({ text }) => {
    const level = levelOf(text);
    return html`<li${level !== undefined && html` class="${level === "WARN" ? "warn" : "bad"}"`}>${text}</li>`;
  });

export function logPage(view: View, lines: readonly RecentLine[]): Document {
  const last = lines.at(-1)?.number ?? 0;
  return adminPage(view, "/log", {
    title: "Log",
    main: html`<p class="quiet" id="log-state">The last ${lines.length} lines; load the page again for newer ones.</p>
<ol class="log" id="log" tabindex="0" aria-label="Lines of the log" data-stream="${view.site.basePath}/admin/log/stream?after=${last}">${logLines(lines)}</ol>
<p class="quiet small">Only what the log level lets through (<code>NGIT_LOG_LEVEL</code>), since the start. Secrets are left out.</p>`,
  });
}

// /admin/log/stream: lines of the log as server-sent events, while the browser is logged in. Few at a time; a reader that
// takes nothing is cut, so that the log never piles up behind it.

const maxStreams = 20;
const maxHeldBytes = 256 * 1024;
const beatMs = 15_000;

export class LogStreams {
  readonly #ring: LogRing;
  readonly #clock: Clock;
  readonly #open = new Set<() => void>();

  constructor(ring: LogRing, clock: Clock) {
    this.#ring = ring;
    this.#clock = clock;
  }

  /** `after`: the number of the last line the page has. */
  serve(response: ServerResponse, after: number, isLoggedIn: () => Promise<boolean>): void {
    if (this.#open.size >= maxStreams) {
      response.setHeader("Retry-After", "30");
      sendPlain(response, 503, "too many pages watch the log");
      return;
    }
    response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no" });
    let cancelBeat: () => void = () => undefined;
    const end = (): void => {
      stop();
      cancelBeat();
      this.#open.delete(end);
      response.end();
    };
    let held = "";
    const sendHeld = async (): Promise<void> => {
      if (!(await isLoggedIn())) return end();
      const text = held;
      held = "";
      if (response.writableLength > maxHeldBytes) response.destroy();
      else if (!response.writableEnded) response.write(text);
    };
    // What comes while it is asked whether the browser is still logged in is sent with it.
    const write = (text: string): void => {
      const isAsking = held !== "";
      held += text;
      if (!isAsking) sendHeld().catch(end);
      else if (held.length > maxHeldBytes) response.destroy();
    };
    const beat = (): void => {
      cancelBeat = this.#clock.after(beatMs, () => {
        beat();
        write(":\n\n");
      });
    };
    const send = ({ number, text }: RecentLine): void =>
      write(`id: ${number}\ndata: ${text.replaceAll("\n", "\\n")}\n\n`);
    const stop = this.#ring.onLine(send);
    this.#open.add(end);
    response.once("close", end);
    beat();
    write(":\n\n");
    for (const line of this.#ring.after(after)) send(line);
  }

  /** Before the server closes: an open stream would hold it up. */
  close(): void {
    for (const end of this.#open) end();
  }
}
