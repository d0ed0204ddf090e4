import type { Flag, FlagTable } from './flags.ts';

/** The flags under their headings, in the order of the table, wrapped to `width` columns. */
export function formatFlagHelp(table: FlagTable, width = 100): string {
  const groups = new Map<string, string[]>();
  for (const [name, flag] of Object.entries(table)) {
    const group = flag.group ?? 'Flags';
    groups.set(group, [...(groups.get(group) ?? []), formatFlag(name, flag, width)]);
  }
  return [...groups].map(([group, flags]) => `${group}:\n${flags.join('\n')}\n`).join('\n');
}

function formatFlag(name: string, flag: Flag<unknown>, width: number): string {
  const short = flag.short === undefined ? '    ' : `-${flag.short}, `;
  const value = flag.kind.bare === undefined ? ` ${flag.kind.label}` : '';
  const notes = [
    flag.default === undefined || flag.default === '' ? '' : ` (default ${flag.default})`,
    flag.deprecated === undefined ? '' : ` [deprecated: ${flag.deprecated}]`,
  ];
  return [
    `  ${short}--${name}${value}`,
    ...wrap(`${flag.help}${notes.join('')}`, width - 10, '          '),
  ].join('\n');
}

function wrap(text: string, width: number, indent: string): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(indent + line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return line === '' ? lines : [...lines, indent + line];
}
