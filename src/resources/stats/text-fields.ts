/** The number after a name at the beginning of a line; undefined for none. Cheaper than to read all lines for a few. */
export function fieldIn(text: string, name: string): number | undefined {
  const start = text.startsWith(`${name} `) ? 0 : text.indexOf(`\n${name} `) + 1;
  if (start === 0 && !text.startsWith(`${name} `)) return undefined;
  const end = text.indexOf('\n', start);
  return numberIn(text.slice(start + name.length + 1, end < 0 ? undefined : end));
}

/** Undefined for words, such as the one for no limit. */
export function numberIn(text: string | undefined): number | undefined {
  const word = text?.trim() ?? '';
  return /^\d+$/.test(word) ? Number(word) : undefined;
}

/** Lines of a name and a number. */
export function fieldsOf(text = ''): ReadonlyMap<string, number> {
  const rows = [...text.matchAll(/^([\w().]+):?\s+(\d+)/gm)];
  return new Map(rows.map(([, name = '', value]) => [name, Number(value)]));
}
