import {
  describeError,
  intFlag,
  KubelingError,
  listeningSockets,
  nodeHttp,
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

/** The flags with which commands select the kubelet of this machine. */
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

const defaultRootDir = '/var/lib/kubelet';

/**
 * Finds the kubelet. A given directory selects only the kubelet of that directory, never the one at
 * the default port. Without a directory: the running "kubeling up", or else the kubelet of the
 * node.
 */
export async function locateKubelet(address: KubeletAddress): Promise<LocalKubelet> {
  const { port, 'data-dir': dataDir, 'root-dir': rootDir } = address;
  if (rootDir !== undefined) return { port: port ?? (await portOfRootDirectory(rootDir)), rootDir };
  if (port !== undefined) return { port, rootDir: (await dataDirectoryOf(dataDir)).rootDir };
  return dataDir === undefined ? await defaultKubelet() : await kubeletOfDataDirectory(dataDir);
}

/**
 * Returns the Authorization header with the loopback token, which proves that the caller may read
 * the root directory.
 */
export async function bearerOf({ port, rootDir }: LocalKubelet): Promise<Readonly<Record<string, string>>> {
  await checkListener(port);
  const token = await readFileIfExists(tokenFile(rootDir)).catch(() => undefined);
  return token === undefined ? {} : { authorization: `Bearer ${token.trim()}` };
}

/**
 * Throws KUBELET_SILENT unless the process that listens on the port belongs to root or the calling
 * user. The port file may be stale, and any user may listen on a free port to receive the token.
 */
export async function checkListener(port: number): Promise<void> {
  const listeners = (await listeningSockets()).filter((socket) => socket.port === port);
  const trusted = [0, process.getuid?.() ?? 0];
  const foreign = listeners.find(({ uid }) => !trusted.includes(uid));
  if (foreign === undefined) return;
  const message = `Cannot send the token to 127.0.0.1:${port}: a process of the user ${foreign.uid} listens there`;
  throw new KubelingError('KUBELET_SILENT', message);
}

/** The size limit of a response, larger than the histories of all pods of a node. */
const maxBodyBytes = 64 * 1024 * 1024;
const maxQuotedLength = 1_000;

/** Requests a URL and returns the body of a successful response. */
export function getText(
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = nodeHttp.request(url, { headers, signal }, (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > maxBodyBytes) call.destroy(unusable(`its response has more than ${maxBodyBytes} bytes`));
        else chunks.push(chunk);
      });
      response.on('error', reject);
      response.on('end', () => {
        const body = Buffer.concat(chunks).toString();
        const { statusCode } = response;
        if (statusCode === 200) resolve(body);
        else reject(unusable(`it responded with ${statusCode}: ${body.slice(0, maxQuotedLength)}`));
      });
    });
    call.on('error', reject);
    call.end();
  });
}

function unusable(why: string): KubelingError {
  return new KubelingError('KUBELET_SILENT', why);
}

async function dataDirectoryOf(dataDir = defaultDataDirectory): Promise<DataDirectory> {
  return (await findDataDirectory(dataDir)) ?? dataDirectoryAt(dataDir);
}

async function defaultKubelet(): Promise<LocalKubelet> {
  const directory = await dataDirectoryOf();
  const upPort = (await readUpState(directory))?.port;
  if (upPort !== undefined && (await isUp(directory))) return { port: upPort, rootDir: directory.rootDir };
  const port = await readPortFile(defaultRootDir);
  if (port !== undefined) return { port, rootDir: defaultRootDir };
  throw new KubelingError(
    'KUBELET_SILENT',
    `Cannot reach a kubelet: neither "kubeling up" runs in ${directory.dataDir} nor "kubeling run" in ${defaultRootDir}, or you may not read their files. Select another with --data-dir or --root-dir`,
  );
}

async function portOfRootDirectory(rootDir: string): Promise<number> {
  const port = await readPortFile(rootDir);
  if (port !== undefined) return port;
  const message = `Cannot reach the kubelet of the root directory ${rootDir}: it has not listened yet, or you may not read its port file`;
  throw new KubelingError('KUBELET_SILENT', message);
}

async function kubeletOfDataDirectory(dataDir: string): Promise<LocalKubelet> {
  const directory = await findDataDirectory(dataDir);
  if (directory === undefined) throw noKubelet(dataDir, 'the directory does not exist');
  if (!(await isUp(directory))) throw noKubelet(dataDir, 'kubeling is not up there');
  const port = (await readUpState(directory))?.port;
  if (port === undefined)
    throw noKubelet(dataDir, 'the kubelet does not listen yet, or you may not read its port file');
  return { port, rootDir: directory.rootDir };
}

/** Reads the port file; undefined if no kubelet has written it or it is unreadable. */
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
