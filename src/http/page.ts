// Pages: escaping, and the headers every page carries. No script is ever allowed inline; a style sheet only by its hash.

import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Safe in text and in quoted attributes (threats row 14). */
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (sign) => entities[sign] ?? "");

export interface Page {
  readonly html: string;
  /** The text of its one inline style sheet. */
  readonly styleSheet: string;
}

export function sendPage(response: ServerResponse, status: number, page: Page): void {
  const styleHash = createHash("sha256").update(page.styleSheet).digest("base64");
  response.writeHead(status, {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Length": Buffer.byteLength(page.html),
    "Content-Security-Policy": [
      "default-src 'none'",
      `style-src 'sha256-${styleHash}'`,
      "img-src 'self' https: data:",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join("; "),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    Vary: "Accept",
  });
  response.end(page.html);
}
