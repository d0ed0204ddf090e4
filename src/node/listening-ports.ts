import { readdir, readFile, readlink, realpath } from 'node:fs/promises';
import { type Clock, listeningSockets } from '../lib/index.ts';

/** The directory of the kernel's files about processes and sockets. */
const proc = '/proc';
/** The flag of a Unix socket that accepts connections. */
const acceptsConnections = 0x10000;
/**
 * The intervals at which the listening ports are read. The first ones are short, because other
 * listeners open while the node starts.
 */
const firstRefreshMs = 1_000;
const refreshMs = 60_000;

/**
 * The TCP ports on which this process and the container runtime listen. A pod must not get one of them as its host port: the port
 * mapping of CNI would redirect the node's own connections, with its credentials, to the pod.
 */
export class ListeningPorts {
  readonly #runtimeSocket: string | undefined;
  #runtimePid: string | undefined;
  #ports: ReadonlySet<number> = new Set();

  constructor(runtimeSocket: string | undefined) {
    this.#runtimeSocket = runtimeSocket;
  }

  /** The listening ports of the last refresh. */
  get ports(): ReadonlySet<number> {
    return this.#ports;
  }

  /** Refreshes the ports until the signal is aborted. Never rejects. */
  async watch(clock: Clock, signal: AbortSignal): Promise<void> {
    for (let delayMs = firstRefreshMs; !signal.aborted; delayMs = Math.min(delayMs * 2, refreshMs)) {
      await this.refresh();
      await clock.sleep(delayMs, signal).catch(() => {});
    }
  }

  /** Reads the listening ports. Never rejects: ports of unreadable processes are left out. */
  async refresh(): Promise<void> {
    const listening = new Map((await listeningSockets()).map(({ inode, port }) => [inode, port]));
    const inodes = [await socketsOf('self'), await this.#runtimeSockets()].flatMap((set) => [...set]);
    this.#ports = new Set(inodes.flatMap((inode) => listening.get(inode) ?? []));
  }

  async #runtimeSockets(): Promise<ReadonlySet<string>> {
    const socket = this.#runtimeSocket;
    if (socket === undefined) return new Set();
    const inodes = await listenersAt(socket);
    const known = this.#runtimePid === undefined ? new Set<string>() : await socketsOf(this.#runtimePid);
    if (inodes.some((inode) => known.has(inode))) return known;
    for (const pid of await readdir(proc).catch(() => [])) {
      if (!/^\d+$/.test(pid)) continue;
      const sockets = await socketsOf(pid);
      if (!inodes.some((inode) => sockets.has(inode))) continue;
      this.#runtimePid = pid;
      return sockets;
    }
    return new Set();
  }
}

async function readTable(path: string): Promise<readonly string[]> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text.split('\n').slice(1);
}

/** The inodes of the Unix sockets that accept connections at the path. */
async function listenersAt(socket: string): Promise<readonly string[]> {
  const path = await realpath(socket).catch(() => socket);
  const rows = await readTable(`${proc}/self/net/unix`);
  return rows.flatMap((row) => {
    const [, , , flags = '', , , inode = '', at] = row.trim().split(/\s+/);
    const isListening = (Number.parseInt(flags, 16) & acceptsConnections) !== 0;
    return isListening && (at === path || at === socket) ? [inode] : [];
  });
}

/** The inodes of the sockets that a process has open; none if the process has exited. */
async function socketsOf(pid: string): Promise<ReadonlySet<string>> {
  const inodes = new Set<string>();
  for (const name of await readdir(`${proc}/${pid}/fd`).catch(() => [])) {
    const target = await readlink(`${proc}/${pid}/fd/${name}`).catch(() => '');
    if (target.startsWith('socket:[')) inodes.add(target.slice('socket:['.length, -1));
  }
  return inodes;
}
