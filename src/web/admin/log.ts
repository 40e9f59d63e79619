// /admin/log: the last lines of the log, and new ones as they are written (server-sent events; log-stream.ts).

import type { RecentLine } from "../../config/logging.js";
import type { Document } from "../../http/routes.js";
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
