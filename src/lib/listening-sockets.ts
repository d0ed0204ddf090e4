import { readFile } from 'node:fs/promises';

/** A TCP socket that accepts connections. */
export interface ListeningSocket {
  readonly port: number;
  /** The user that opened it. */
  readonly uid: number;
  readonly inode: string;
}

const listenState = '0A';

/** The listening TCP sockets of the own network namespace, of both address families; none if the kernel does not list them. */
export async function listeningSockets(procDir = '/proc'): Promise<readonly ListeningSocket[]> {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`${procDir}/self/net/${name}`, 'utf8').catch(() => '')),
  );
  return tables.flatMap((text) => text.split('\n').slice(1).flatMap(parseRow));
}

/** Reads a row such as `0: 0100007F:1F90 00000000:0000 0A 0:0 0:0 0 0 0 12345 …`. */
function parseRow(row: string): readonly ListeningSocket[] {
  const [, local = '', , state, , , , uid, , inode = ''] = row.trim().split(/\s+/);
  const port = Number.parseInt(local.split(':')[1] ?? '', 16);
  return state === listenState && port > 0 ? [{ port, uid: Number(uid), inode }] : [];
}
