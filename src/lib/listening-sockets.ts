import { readFile } from 'node:fs/promises';

/** A TCP socket in the LISTEN state. */
export interface ListeningSocket {
  readonly port: number;
  /** The UID of the user that opened the socket. */
  readonly uid: number;
  readonly inode: string;
}

const listenState = '0A';

/**
 * The listening TCP sockets in the network namespace of this process, over IPv4 and IPv6; none if
 * the kernel has no socket tables.
 */
export async function listeningSockets(procDir = '/proc'): Promise<readonly ListeningSocket[]> {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`${procDir}/self/net/${name}`, 'utf8').catch(() => '')),
  );
  return tables.flatMap((text) => text.split('\n').slice(1).flatMap(parseRow));
}

/**
 * Parses a row of /proc/net/tcp such as `0: 0100007F:1F90 00000000:0000 0A 0:0 0:0 0 0 0 12345 …`.
 */
function parseRow(row: string): readonly ListeningSocket[] {
  const [, local = '', , state, , , , uid, , inode = ''] = row.trim().split(/\s+/);
  const port = Number.parseInt(local.split(':')[1] ?? '', 16);
  return state === listenState && port > 0 ? [{ port, uid: Number(uid), inode }] : [];
}
