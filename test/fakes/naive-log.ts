/**
 * Reads logs in the simplest way: all at once, line by line. Tests compare the real reader with it.
 */

export interface NaiveOptions {
  readonly tailLines?: number | undefined;
  /** Nanoseconds since 1970; earlier lines are skipped. */
  readonly sinceNs?: bigint | undefined;
  readonly timestamps?: boolean | undefined;
  readonly limitBytes?: number | undefined;
  readonly stream?: 'stdout' | 'stderr' | undefined;
}

interface Shown {
  readonly ns: bigint;
  readonly stamp: string;
  text: string;
  state: 'continued' | 'ended' | 'cut';
}

/** Reads each byte as one character, so that decoding and encoding change nothing. */
export function naiveLog(files: readonly Uint8Array[], options: NaiveOptions = {}): Buffer {
  const { tailLines, sinceNs = 0n, timestamps = false, limitBytes } = options;
  let lines = joined(files, options.stream);
  if (tailLines !== undefined) lines = tailLines === 0 ? [] : lines.slice(-tailLines);
  const shown = lines.filter(({ ns }) => ns >= sinceNs);
  const text = shown
    .map((line, index) => {
      const end = line.state === 'ended' || (index < shown.length - 1 && line.state === 'cut') ? '\n' : '';
      return `${timestamps ? `${line.stamp} ` : ''}${line.text}${end}`;
    })
    .join('');
  return Buffer.from(text, 'latin1').subarray(0, limitBytes);
}

function joined(files: readonly Uint8Array[], stream: string | undefined): Shown[] {
  const lines: Shown[] = [];
  for (const file of files) {
    const rows = Buffer.from(file).toString('latin1').split('\n');
    for (const [index, row] of rows.entries()) {
      const isCut = index === rows.length - 1;
      if (isCut && row === '') continue;
      const parsed = parseRow(row);
      if (parsed === undefined || (stream !== undefined && stream !== parsed.stream)) continue;
      const open = lines.at(-1)?.state === 'continued' ? lines.at(-1) : undefined;
      const line = open ?? { ns: parsed.ns, stamp: parsed.stamp, text: '', state: 'continued' };
      if (open === undefined) lines.push(line);
      line.text += parsed.text;
      if (!parsed.isPart) line.state = isCut && !parsed.isJson ? 'cut' : 'ended';
    }
  }
  return lines;
}

function parseRow(row: string) {
  if (row.startsWith('{')) return parseJsonRow(row);
  const [time = '', stream = '', tag, ...text] = row.split(' ');
  if (tag === undefined || text.length === 0 || !['stdout', 'stderr'].includes(stream)) return undefined;
  const at = timeOf(time);
  return at && { ...at, stream, isPart: tag.split(':')[0] === 'P', isJson: false, text: text.join(' ') };
}

function parseJsonRow(row: string) {
  try {
    const { log, stream, time } = JSON.parse(Buffer.from(row, 'latin1').toString());
    const at = timeOf(time);
    const text = Buffer.from(log.replace(/\n$/, '')).toString('latin1');
    return at && { ...at, stream, isPart: !log.endsWith('\n'), isJson: true, text };
  } catch {
    return undefined;
  }
}

function timeOf(time: string) {
  const [, seconds = '', digits = ''] = /^([^.Z]+)(?:\.(\d+))?Z$/.exec(time) ?? [];
  const ms = Date.parse(`${seconds}Z`);
  if (seconds.length !== 19 || Number.isNaN(ms)) return undefined;
  const nanos = digits.slice(0, 9).padEnd(9, '0');
  return { ns: BigInt(ms) * 1_000_000n + BigInt(nanos), stamp: `${seconds}.${nanos}Z` };
}
