/** Escapes characters that control a terminal, except for line breaks. */
export function printableLines(text: string): string {
  return text.replace(/[^\P{Cc}\n]|\p{Bidi_Control}|[\u2028\u2029]/gu, escaped);
}

/**
 * Escapes control characters and line breaks, so that the text cannot look like a line of kubeling.
 */
export function printable(text: string): string {
  return printableLines(text).replaceAll('\n', '\\n');
}

function escaped(character: string): string {
  if (character === '\t') return ' ';
  return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;
}
