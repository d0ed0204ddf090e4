/** Compares the table of error codes in the documentation with that in the program. */

export interface Row {
  readonly code: string;
  readonly kind: string;
  readonly meaning: string;
  readonly advice: string;
}

/** Returns the rows whose first cell is a code in capitals. */
export function rowsOf(markdown: string): Row[] {
  return markdown
    .split('\n')
    .filter((line) => /^\| `[A-Z]/.test(line) && line.split('|').length > 5)
    .map((line) => {
      const [code = '', kind = '', meaning = '', advice = ''] = line
        .split('|')
        .slice(1)
        .map((cell) => cell.trim().replaceAll('`', ''));
      return { code, kind, meaning, advice };
    });
}

/** Returns one sentence for each difference; none if the page matches the program. */
export function differences(markdown: string, kinds: Readonly<Record<string, string>>): string[] {
  const rows = rowsOf(markdown);
  const documented = new Set(rows.map(({ code }) => code));
  const missing = Object.keys(kinds).filter((code) => !documented.has(code));
  return [
    ...missing.map((code) => `${code} is not explained`),
    ...rows.flatMap((row, index) => [
      ...(rows.findIndex(({ code }) => code === row.code) === index
        ? []
        : [`${row.code} is explained twice`]),
      ...wrongIn(row, kinds[row.code]),
    ]),
  ];
}

function wrongIn(row: Row, kind: string | undefined): string[] {
  if (kind === undefined) return [`${row.code} is explained but not in use`];
  return [
    row.kind === kind ? '' : `${row.code} is of kind ${kind}, not ${row.kind}`,
    row.meaning === '' ? `${row.code} has no meaning` : '',
    row.advice === '' ? `${row.code} has no advice` : '',
  ].filter((text) => text !== '');
}
