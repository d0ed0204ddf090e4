import { execFileSync } from 'node:child_process';
import type { ListenerRow, Way } from './table.ts';

/** A listening socket as shown by ss. */
export interface FoundListener {
  readonly process: string;
  /** The address of a TCP, UDP or raw socket. */
  readonly at?: { readonly protocol: string; readonly host: string; readonly port: number };
  /** The path of a Unix socket; abstract names begin with @. */
  readonly path?: string;
}

/**
 * All listening sockets, including abstract ones, in the network namespace that the command prefix
 * enters.
 */
export function findListeners(inside: readonly string[]): readonly FoundListener[] {
  const list = (...flags: readonly string[]) => {
    const [file = '', ...words] = [...inside, 'ss', '-H', '-l', '-p', ...flags];
    return execFileSync(file, words, { encoding: 'utf8' })
      .split('\n')
      .filter((line) => line.trim() !== '');
  };
  return [...list('-n', '-t', '-u', '-w').map(networkListener), ...list('-x').map(unixListener)];
}

function networkListener(line: string): FoundListener {
  const [protocol = '', , , , local = ''] = line.trim().split(/\s+/);
  const at = local.lastIndexOf(':');
  const host = local.slice(0, at).replace(/%.*$/, '');
  return { process: processOf(line), at: { protocol, host, port: Number(local.slice(at + 1)) } };
}

function unixListener(line: string): FoundListener {
  const [, , , , path = ''] = line.trim().split(/\s+/);
  return { process: processOf(line), path };
}

function processOf(line: string): string {
  return /users:\(\("([^"]+)"/.exec(line)?.[1] ?? 'unknown';
}

export interface NodeDirectories {
  readonly way: Way;
  readonly dataDir: string;
  readonly rootDir: string;
}

export interface SortedListeners {
  readonly found: ReadonlyMap<ListenerRow, readonly FoundListener[]>;
  readonly unknown: readonly FoundListener[];
  readonly missing: readonly ListenerRow[];
}

/**
 * Assigns each listener to a table row: rows with a fixed port first, then rows whose port the
 * kernel chose; `isTls` tells the latter apart. A row with `*` in its path may have several
 * listeners, every other row has exactly one.
 */
export async function sortListeners(
  listeners: readonly FoundListener[],
  table: readonly ListenerRow[],
  places: NodeDirectories,
  isTls: (port: number) => Promise<boolean>,
): Promise<SortedListeners> {
  const rows = table.filter(({ ways }) => ways.includes(places.way));
  const isExact = ({ place }: ListenerRow) => place.kind === 'unix' || place.port !== 'any';
  const order = [...rows.filter(isExact), ...rows.filter((row) => !isExact(row))];
  const found = new Map<ListenerRow, FoundListener[]>();
  const unknown: FoundListener[] = [];
  for (const listener of listeners) {
    const row = await rowOf(listener, order, found, places, isTls);
    if (row === undefined) unknown.push(listener);
    else found.set(row, [...(found.get(row) ?? []), listener]);
  }
  return { found, unknown, missing: rows.filter((row) => !found.has(row)) };
}

async function rowOf(
  listener: FoundListener,
  rows: readonly ListenerRow[],
  found: ReadonlyMap<ListenerRow, unknown>,
  places: NodeDirectories,
  isTls: (port: number) => Promise<boolean>,
): Promise<ListenerRow | undefined> {
  for (const row of rows) {
    const { place } = row;
    if (row.process !== listener.process) continue;
    if (place.kind === 'unix') {
      const isFree = place.path.includes('*') || !found.has(row);
      if (isFree && pathPattern(place.path, places).test(listener.path ?? '')) return row;
    } else if (listener.at?.protocol === 'tcp' && listener.at.host === place.host && !found.has(row)) {
      if (place.port === listener.at.port) return row;
      if (place.port === 'any' && (await isTls(listener.at.port)) === place.tls) return row;
    }
  }
  return undefined;
}

function pathPattern(path: string, { dataDir, rootDir }: NodeDirectories): RegExp {
  const escaped = path
    .replace('DATA', dataDir)
    .replace('ROOT', rootDir)
    .replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(`^${escaped.replaceAll('*', '[^/]+')}$`);
}
