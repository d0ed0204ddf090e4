import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * A volume, mounted at its name, whose files `a` and `b` contain the same number in each of `lines`
 * lines.
 */
export interface NumberVolume {
  readonly name: string;
  readonly lines: number;
}

/** Returns the content of a file `a` or `b`: the number in each line. */
export function numberLines(number: number, lines: number): string {
  return `${number}\n`.repeat(lines);
}

/**
 * A container that reads the files of each volume continuously: each must be complete, contain one
 * number in all lines, and never an older one than the previous read. The volume `said` receives
 * the current state in the file `looks`, and errors in the file `wrong`.
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

/** Reads the reader's reports from the directory of the volume `said` on the host. */
export async function readerLooks(
  said: string,
): Promise<{ readonly count: number; readonly numbers: readonly number[]; readonly wrong: string }> {
  const text = await readFile(join(said, 'looks'), 'utf8').catch(() => '0');
  const wrong = await readFile(join(said, 'wrong'), 'utf8').catch(() => '');
  const [count = 0, ...numbers] = text.split(' ').map(Number);
  return { count, numbers, wrong };
}
