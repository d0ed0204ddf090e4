import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A volume whose files `a` and `b` say one number in so many lines, mounted at its name. */
export interface NumberVolume {
  readonly name: string;
  readonly lines: number;
}

/** What such a file says. */
export function numberLines(number: number, lines: number): string {
  return `${number}\n`.repeat(lines);
}

/**
 * Reads the files of each volume again and again: each is whole, says one thing from its first line to its last, and
 * never anything older than what was read before it. What it saw last is in `looks` of the volume `said`, what was wrong
 * in `wrong`.
 */
export function readerScript(volumes: readonly NumberVolume[]): string {
  const awk = `NR == 1 { first = $1 } $1 != first { torn = 1 } END { if (torn || NR != lines) print "torn"; else print first }`;
  const look = ({ name, lines }: NumberVolume) => [
    `  for file in /${name}/a /${name}/b; do`,
    `    now=$(awk -v lines=${lines} '${awk}' $file 2>&1) || now=missing`,
    `    case $now in *[!0-9]*|"") echo "$file: $now" >> /said/wrong; now=$${name};; esac`,
    `    [ "$now" -ge "$${name}" ] || echo "$file: $now after $${name}" >> /said/wrong`,
    `    ${name}=$now`,
    '  done',
  ];
  return [
    ...volumes.map(({ name }) => `${name}=0`),
    'n=0',
    'while true; do',
    ...volumes.flatMap(look),
    `  n=$((n + 1)); echo "$n ${volumes.map(({ name }) => `$${name}`).join(' ')}" > /said/new; mv /said/new /said/looks`,
    '  sleep 0.005',
    'done',
  ].join('\n');
}

/** What the reader has told, by where the volume `said` is on the machine. */
export async function readerLooks(
  said: string,
): Promise<{ readonly count: number; readonly numbers: readonly number[]; readonly wrong: string }> {
  const text = await readFile(join(said, 'looks'), 'utf8').catch(() => '0');
  const wrong = await readFile(join(said, 'wrong'), 'utf8').catch(() => '');
  const [count = 0, ...numbers] = text.split(' ').map(Number);
  return { count, numbers, wrong };
}
