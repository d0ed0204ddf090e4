const short: Readonly<Record<string, string>> = {
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

/** Quoted as programs that read pod metadata expect it: printable characters as they are, others escaped. */
export function goQuote(text: string): string {
  return `"${text.replace(unprintable, escaped)}"`;
}

function escaped(character: string): string {
  const known = short[character];
  if (known !== undefined) return known;
  const code = character.codePointAt(0) ?? 0;
  if (code >= 0xd800 && code <= 0xdfff) return '\\ufffd';
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code < 0x10000
    ? `\\u${code.toString(16).padStart(4, '0')}`
    : `\\U${code.toString(16).padStart(8, '0')}`;
}
