import {
  describeError,
  intFlag,
  KubelingError,
  ProcessTable,
  readFileIfExists,
  readLockOwner,
  stringFlag,
} from '../lib/index.ts';
import {
  type DataDirectory,
  dataDirectoryAt,
  dataDirFlag,
  defaultDataDirectory,
  findDataDirectory,
  portFile,
  readUpState,
  tokenFile,
} from './data-directory/data-directory.ts';

/** How our own commands are told which kubelet of this machine is meant. */
export const kubeletFlags = {
  'data-dir': dataDirFlag,
  port: {
    kind: intFlag(1, 65_535),
    help: 'Where the kubelet answers on this machine; found by the data directory or the root directory unless given.',
  },
  'root-dir': {
    kind: stringFlag,
    help: 'The root directory of a kubelet that "kubeling run" started; found by the data directory unless given.',
  },
};

export interface KubeletAddress {
  readonly 'data-dir'?: string;
  readonly port?: number;
  readonly 'root-dir'?: string;
}

/** Where a kubelet answers on loopback, and where it keeps what only its own user may read. */
export interface LocalKubelet {
  readonly port: number;
  readonly rootDir: string;
}

const defaultPort = 10_250;
const defaultRootDir = '/var/lib/kubelet';

/**
 * Whoever names a directory means the kubelet of that one, and is not sent to another that happens to answer at the usual
 * place. Without one it is the kubeling that is up, else the kubelet of the node.
 */
export async function locateKubelet(place: KubeletAddress): Promise<LocalKubelet> {
  const { port, 'data-dir': dataDir, 'root-dir': rootDir } = place;
  if (rootDir !== undefined) return { port: port ?? (await readPortFile(rootDir)) ?? defaultPort, rootDir };
  if (port !== undefined) return { port, rootDir: (await dataDirectoryOf(dataDir)).rootDir };
  return dataDir === undefined ? await defaultKubelet() : await kubeletOfDataDirectory(dataDir);
}

/** What shows that we are its user, where we are. */
export async function bearerOf({ rootDir }: LocalKubelet): Promise<Readonly<Record<string, string>>> {
  const token = await readFileIfExists(tokenFile(rootDir)).catch(() => undefined);
  return token === undefined ? {} : { authorization: `Bearer ${token.trim()}` };
}

async function dataDirectoryOf(dataDir = defaultDataDirectory): Promise<DataDirectory> {
  return (await findDataDirectory(dataDir)) ?? dataDirectoryAt(dataDir);
}

async function defaultKubelet(): Promise<LocalKubelet> {
  const home = await dataDirectoryOf();
  const upPort = (await readUpState(home))?.port;
  const up = { port: upPort ?? defaultPort, rootDir: home.rootDir };
  if (upPort !== undefined && (await isUp(home).catch(() => true))) return up;
  const port = await readPortFile(defaultRootDir);
  return port === undefined ? up : { port, rootDir: defaultRootDir };
}

async function kubeletOfDataDirectory(dataDir: string): Promise<LocalKubelet> {
  const home = await findDataDirectory(dataDir);
  if (home === undefined) throw noKubelet(dataDir, 'there is no such directory');
  if (!(await isUp(home))) throw noKubelet(dataDir, 'no kubeling is up there');
  const port = (await readUpState(home))?.port;
  if (port === undefined) throw noKubelet(dataDir, 'it does not answer yet, or is not yours to ask');
  return { port, rootDir: home.rootDir };
}

/** Undefined when no kubelet has answered there, or its word is not ours to read. */
async function readPortFile(rootDir: string): Promise<number | undefined> {
  const written = await readFileIfExists(portFile(rootDir)).catch(() => undefined);
  const port = Number(written?.trim() || Number.NaN);
  return Number.isInteger(port) && port > 0 && port <= 65_535 ? port : undefined;
}

async function isUp({ dataDir, lockFile }: DataDirectory): Promise<boolean> {
  const owner = await readLockOwner(lockFile).catch((error) => {
    throw noKubelet(dataDir, describeError(error));
  });
  return owner !== undefined && (await new ProcessTable().isAlive(owner));
}

function noKubelet(dataDir: string, why: string): KubelingError {
  const message = `Cannot ask the kubelet of the data directory ${dataDir}: ${why}`;
  return new KubelingError('KUBELET_SILENT', message);
}
