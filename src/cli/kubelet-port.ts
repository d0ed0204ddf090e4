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

/** Flags by which commands select the kubelet of this machine. */
export const kubeletFlags = {
  'data-dir': dataDirFlag,
  port: {
    kind: intFlag(1, 65_535),
    help: 'Loopback port of the kubelet; by default found through the data directory or the root directory.',
  },
  'root-dir': {
    kind: stringFlag,
    help: 'Root directory of a kubelet that "kubeling run" started; by default the data directory is used.',
  },
};

export interface KubeletAddress {
  readonly 'data-dir'?: string;
  readonly port?: number;
  readonly 'root-dir'?: string;
}

/** The loopback address of a kubelet, and the root directory with its token. */
export interface LocalKubelet {
  readonly port: number;
  readonly rootDir: string;
}

const defaultPort = 10_250;
const defaultRootDir = '/var/lib/kubelet';

/**
 * A given directory selects its kubelet, and never another one that happens to use the default
 * port. Without one it is the running "kubeling up", else the kubelet of the node.
 */
export async function locateKubelet(place: KubeletAddress): Promise<LocalKubelet> {
  const { port, 'data-dir': dataDir, 'root-dir': rootDir } = place;
  if (rootDir !== undefined) return { port: port ?? (await readPortFile(rootDir)) ?? defaultPort, rootDir };
  if (port !== undefined) return { port, rootDir: (await dataDirectoryOf(dataDir)).rootDir };
  return dataDir === undefined ? await defaultKubelet() : await kubeletOfDataDirectory(dataDir);
}

/** The loopback token, which proves that the caller may read the root directory. */
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
  if (home === undefined) throw noKubelet(dataDir, 'the directory does not exist');
  if (!(await isUp(home))) throw noKubelet(dataDir, 'kubeling is not up there');
  const port = (await readUpState(home))?.port;
  if (port === undefined)
    throw noKubelet(dataDir, 'the kubelet does not listen yet, or you may not read its port file');
  return { port, rootDir: home.rootDir };
}

/** Undefined when no kubelet has listened there, or when its port file is unreadable. */
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
  const message = `Cannot reach the kubelet of the data directory ${dataDir}: ${why}`;
  return new KubelingError('KUBELET_SILENT', message);
}
