// Texts without what they end with. A pattern like `/\/+$/` looks at every run of signs in the text from each of its
// places, which takes the square of its length; this looks once, from the end.

export function withoutTrailing(text: string, signs: string): string {
  let end = text.length;
  while (end > 0 && signs.includes(text.charAt(end - 1))) end--;
  return end === text.length ? text : text.slice(0, end);
}
