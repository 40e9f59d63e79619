// A small picture that says whether a repository's refs are as its maintainers signed them, for READMEs elsewhere.

import { html } from "./html.js";
import type { OverallStanding } from "./ref-comparison.js";

export type BadgeWord = OverallStanding | "waiting" | "unknown";

const colours: Readonly<Record<BadgeWord, string>> = {
  "in line": "#1d6b3f",
  partial: "#8a5300",
  differs: "#a3271f",
  none: "#566068",
  waiting: "#566068",
  unknown: "#566068",
};

const widthOf = (text: string): number => Math.round(text.length * 6.6 + 12);

export function badge(word: BadgeWord): string {
  const label = "state";
  const [left, right] = [widthOf(label), widthOf(word)];
  return html`<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" role="img" aria-label="${label}: ${word}"><title>${label}: ${word}</title><clipPath id="r"><rect width="${left + right}" height="20" rx="4"/></clipPath><g clip-path="url(#r)"><rect width="${left}" height="20" fill="#333a3e"/><rect x="${left}" width="${right}" height="20" fill="${colours[word]}"/></g><g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11"><text x="${left / 2}" y="14">${label}</text><text x="${left + right / 2}" y="14">${word}</text></g></svg>`.toString();
}
