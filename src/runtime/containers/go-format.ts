const htmlEscapes: ReadonlyMap<string, string> = new Map([
  ['<', '\\u003c'],
  ['>', '\\u003e'],
  ['&', '\\u0026'],
  ['\u2028', '\\u2028'],
  ['\u2029', '\\u2029'],
]);

/**
 * Formats JSON with the escapes of Go's encoding/json, for hashes and files that must match those
 * of the Go kubelet.
 */
export function goJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(/[<>&\u2028\u2029]/g, (each) => htmlEscapes.get(each) ?? each);
}

const shortEscapes: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
};
const unprintable = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]|["\\]/gu;

/** Quotes a string like Go's %q, as programs that read pod metadata expect. */
export function goQuote(text: string): string {
  return `"${text.replace(unprintable, escapedCharacter)}"`;
}

function escapedCharacter(character: string): string {
  const known = shortEscapes[character];
  if (known !== undefined) return known;
  const code = character.codePointAt(0) ?? 0;
  if (code >= 0xd800 && code <= 0xdfff) return '\\ufffd';
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code < 0x10000
    ? `\\u${code.toString(16).padStart(4, '0')}`
    : `\\U${code.toString(16).padStart(8, '0')}`;
}
