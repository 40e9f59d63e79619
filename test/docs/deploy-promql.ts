// Reads PromQL far enough to find slips: every character belongs to a token, brackets and braces close, words in call
// position are functions we know, and what is left are metrics with the labels asked of them. No types, no values.

export interface Asked {
  readonly metric: string;
  /** In braces, or in a `by` around it. */
  readonly labels: readonly string[];
}

export type PromQl =
  | { readonly ok: true; readonly asked: readonly Asked[] }
  | { readonly ok: false; readonly fault: string };

interface Token {
  readonly kind: "space" | "word" | "string" | "duration" | "number" | "sign";
  readonly text: string;
}

const aggregations = new Set(["sum", "min", "max", "avg", "count", "topk", "bottomk", "count_values", "quantile"]);
const functions = new Set(["rate", "increase", "deriv", "histogram_quantile", "absent", "vector"]);
const operators = new Set(["and", "or", "unless", "offset", "bool"]);
const groupings = new Set(["by", "without", "on", "ignoring"]);

const tokenPatterns: readonly (readonly [Token["kind"], RegExp])[] = [
  ["space", /\s+/y],
  ["string", /"(?:[^"\\\n]|\\.)*"/y],
  ["duration", /\d+(?:ms|[smhdwy])(?::(?:\d+(?:ms|[smhdwy]))?)?|\$__rate_interval/y],
  ["number", /\d+(?:\.\d+)?(?:e[+-]?\d+)?/y],
  ["word", /[A-Za-z_:][\w:]*/y],
  ["sign", /==|!=|=~|!~|>=|<=|[=<>+\-*/%^(){}[\],]/y],
];

function tokensOf(text: string): Token[] | string {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const found = tokenPatterns
      .map(([kind, pattern]) => {
        pattern.lastIndex = at;
        return { kind, text: pattern.exec(text)?.[0] };
      })
      .find((token): token is Token => token.text !== undefined);
    if (!found) return `nothing known begins at ${JSON.stringify(text.slice(at, at + 20))}`;
    if (found.kind !== "space") tokens.push(found);
    at += found.text.length;
  }
  return tokens;
}

export function readPromQl(text: string): PromQl {
  const tokens = tokensOf(text);
  if (typeof tokens === "string") return { ok: false, fault: tokens };
  const bracketFault = unclosed(tokens);
  if (bracketFault !== undefined) return { ok: false, fault: bracketFault };
  const asked: { metric: string; labels: string[] }[] = [];
  const grouped: string[] = [];
  let at = 0;
  const next = (): string => tokens[at]?.text ?? "";
  const take = (): Token | undefined => tokens[at++];
  while (at < tokens.length) {
    const token = take();
    if (token?.kind !== "word") continue;
    const { text: word } = token;
    if (groupings.has(word)) {
      if (take()?.text !== "(") return { ok: false, fault: `${word} without a list` };
      for (let inside = take(); inside !== undefined && inside.text !== ")"; inside = take()) {
        if (inside.kind === "word") grouped.push(inside.text);
        else if (inside.text !== ",") return { ok: false, fault: `${inside.text} in a list of labels` };
      }
    } else if (aggregations.has(word) || functions.has(word)) {
      const isCalled = next() === "(" || (aggregations.has(word) && groupings.has(next()));
      if (!isCalled) return { ok: false, fault: `${word} is not called` };
    } else if (!operators.has(word)) {
      if (next() === "(") return { ok: false, fault: `unknown function ${word}` };
      const labels = next() === "{" ? matchersFrom() : [];
      if (labels === undefined)
        return { ok: false, fault: `the braces after ${word} are not label, comparison, string` };
      asked.push({ metric: word, labels });
    }
  }
  if (asked.length === 0) return { ok: false, fault: "asks for no metric" };
  return { ok: true, asked: asked.map(({ metric, labels }) => ({ metric, labels: [...labels, ...grouped] })) };

  function matchersFrom(): string[] | undefined {
    const labels: string[] = [];
    take();
    while (next() !== "}") {
      const [label, comparison, value] = [take(), take(), take()];
      if (label?.kind !== "word" || value?.kind !== "string") return undefined;
      if (!["=", "!=", "=~", "!~"].includes(comparison?.text ?? "")) return undefined;
      labels.push(label.text);
      if (next() === ",") take();
      else if (next() !== "}") return undefined;
    }
    take();
    return labels;
  }
}

function unclosed(tokens: readonly Token[]): string | undefined {
  const closing: Record<string, string> = { "(": ")", "[": "]", "{": "}" };
  const open: string[] = [];
  for (const { kind, text } of tokens) {
    if (kind !== "sign") continue;
    const closes = closing[text];
    if (closes !== undefined) open.push(closes);
    else if (")]}".includes(text) && open.pop() !== text) return `${text} closes nothing`;
  }
  return open.length > 0 ? `${open.join(" ")} is missing` : undefined;
}
