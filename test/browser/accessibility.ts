// What a reader with a keyboard, a screen reader, poor sight or a small phone needs of a page, looked for in the page.
// `checkInPage` runs in the browser: Playwright sends its text, so it uses nothing from this file.

/** Sentences about what is wrong; empty when nothing is. */
export function checkInPage(): string[] {
  interface Box {
    readonly width: number;
    readonly height: number;
  }
  interface Element {
    readonly tagName: string;
    readonly id: string;
    readonly textContent: string | null;
    readonly parentElement: Element | null;
    readonly childNodes: Iterable<{ readonly nodeType: number; readonly textContent: string | null }>;
    readonly scrollWidth: number;
    readonly clientWidth: number;
    getAttribute(name: string): string | null;
    hasAttribute(name: string): boolean;
    getBoundingClientRect(): Box;
    closest(selector: string): Element | null;
    querySelector(selector: string): Element | null;
  }
  interface PageWindow {
    readonly document: {
      readonly documentElement: Element;
      readonly title: string;
      querySelectorAll(selector: string): Iterable<Element>;
      querySelector(selector: string): Element | null;
    };
    readonly innerWidth: number;
    getComputedStyle(element: Element): Record<string, string>;
  }
  const window = globalThis as unknown as PageWindow;
  const { document } = window;
  const wrong: string[] = [];
  const all = (selector: string): Element[] => [...document.querySelectorAll(selector)];
  const said = (element: Element): string =>
    `${element.tagName.toLowerCase()} "${(element.textContent ?? "").trim().slice(0, 40)}"`;

  if (!document.documentElement.getAttribute("lang")) wrong.push("the page has no language");
  if (document.title.trim() === "") wrong.push("the page has no title");
  for (const landmark of ["header", "main", "footer"]) {
    if (all(landmark).length !== 1) wrong.push(`${all(landmark).length} ${landmark} elements`);
  }
  const navigations = all("nav").map((element) => element.getAttribute("aria-label") ?? "");
  if (navigations.length === 0 || navigations.includes("") || new Set(navigations).size !== navigations.length) {
    wrong.push("navigation is missing or cannot be told apart");
  }

  let level = 0;
  const headings = all("h1, h2, h3, h4, h5, h6");
  if (headings.filter(({ tagName }) => tagName === "H1").length !== 1) wrong.push("not exactly one h1");
  for (const element of headings) {
    const own = Number(element.tagName.slice(1));
    if (own > level + 1) wrong.push(`heading level ${own} after ${level}: ${said(element)}`);
    const pictured = element.querySelector("img")?.getAttribute("alt") ?? "";
    if (`${element.textContent ?? ""}${pictured}`.trim() === "") wrong.push("an empty heading");
    level = own;
  }

  const ids = all("[id]").map(({ id }) => id);
  if (new Set(ids).size !== ids.length) wrong.push("an id is used twice");
  for (const element of all("[aria-labelledby]")) {
    if (!document.querySelector(`[id="${element.getAttribute("aria-labelledby")}"]`))
      wrong.push(`a label is missing for ${said(element)}`);
  }
  for (const element of all("input:not([type=hidden]), select, textarea")) {
    if (!document.querySelector(`label[for="${element.id}"]`)) wrong.push("a field without a label");
  }
  for (const element of all("a, button")) {
    const picture = element.querySelector("img")?.getAttribute("alt") ?? "";
    const name = (element.getAttribute("aria-label") ?? element.textContent ?? "") + picture;
    if (name.trim() === "") wrong.push("a link or button without a name");
  }
  // WCAG 2.5.8: what is no link within a sentence is large enough for a thumb.
  for (const element of all("a, button, summary, input:not([type=hidden]), textarea, select")) {
    const { width, height } = element.getBoundingClientRect();
    if (width === 0 || window.getComputedStyle(element).display === "inline" || element.closest(".skip, .gutter"))
      continue;
    if (height < 23.5) wrong.push(`only ${Math.round(height)} pixels high: ${said(element)}`);
  }
  for (const element of all("img")) if (!element.hasAttribute("alt")) wrong.push("a picture without a text");
  for (const element of all("meter")) if (!element.getAttribute("aria-label")) wrong.push("a meter without a label");
  for (const element of all("svg")) if (!element.getAttribute("aria-label")) wrong.push("a drawing without a label");
  for (const element of all("table")) {
    if ([...document.querySelectorAll("th")].some((cell) => !cell.hasAttribute("scope")))
      wrong.push(`a heading cell without scope in ${said(element)}`);
  }
  for (const element of all("[style], [onclick], [onload]")) wrong.push(`inline style or script at ${said(element)}`);

  // Contrast (WCAG AA): text against the first background behind it that is not transparent.
  const colour = (text: string): number[] => (text.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = ([red = 0, green = 0, blue = 0]: number[]): number => {
    const linear = [red, green, blue].map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * (linear[0] ?? 0) + 0.7152 * (linear[1] ?? 0) + 0.0722 * (linear[2] ?? 0);
  };
  const background = (element: Element | null): number[] => {
    for (let at = element; at; at = at.parentElement) {
      const value = colour(window.getComputedStyle(at).backgroundColor ?? "");
      if ((value[3] ?? 1) > 0) return value;
    }
    return [255, 255, 255];
  };
  for (const element of all("body *")) {
    const hasText = [...element.childNodes].some(
      (node) => node.nodeType === 3 && (node.textContent ?? "").trim() !== "",
    );
    const box = element.getBoundingClientRect();
    if (!hasText || box.width === 0 || element.closest("svg")) continue;
    const [front, back] = [
      luminance(colour(window.getComputedStyle(element).color ?? "")),
      luminance(background(element)),
    ];
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    if (ratio < 4.5) wrong.push(`contrast ${ratio.toFixed(2)} at ${said(element)}`);
  }

  // Nothing may stick out; what scrolls inside itself can be reached by keyboard.
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) wrong.push(`the page is ${scrollWidth} wide in ${clientWidth}`);
  for (const element of all("pre, .scroll, .log")) {
    if (element.scrollWidth > element.clientWidth && element.getAttribute("tabindex") !== "0")
      wrong.push(`cannot be scrolled by keyboard: ${said(element)}`);
  }
  return wrong;
}

/** What has the focus, and whether a reader can see that it has. */
export function focusInPage(): { readonly stop: string; readonly isVisible: boolean } {
  interface Focused {
    readonly tagName: string;
    readonly textContent: string | null;
  }
  const page = globalThis as unknown as {
    readonly document: { readonly activeElement: Focused };
    getComputedStyle(element: Focused): Record<string, string>;
  };
  const element = page.document.activeElement;
  const style = page.getComputedStyle(element);
  const isVisible = style.outlineStyle !== "none" && Number.parseFloat(style.outlineWidth ?? "0") >= 2;
  return { stop: `${element.tagName} ${(element.textContent ?? "").trim().slice(0, 30)}`, isVisible };
}
