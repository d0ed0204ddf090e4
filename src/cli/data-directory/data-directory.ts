import { mkdir, realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import {
  type FlagKind,
  flagError,
  KubelingError,
  readJsonFile,
  untrustedDirectory,
  writeJsonAtomic,
} from '../../lib/index.ts';

/** The default data directory. */
export const defaultDataDirectory = '/var/lib/kubeling';

/**
 * Rejects an empty value, which would mean the working directory and usually comes from an unset
 * variable in a script.
 */
const directoryFlag: FlagKind<string> = {
  label: 'string',
  read(text) {
    if (text === '') throw flagError('a directory', text);
    return text;
  },
};

export const dataDirFlag = {
  kind: directoryFlag,
  help: 'The data directory of kubeling.',
  default: defaultDataDirectory,
};

/** The data directory of `kubeling up`, and the paths in it. */
export interface DataDirectory {
  readonly dataDir: string;
  /** The file that a running "kubeling up" locks. */
  readonly lockFile: string;
  readonly stateFile: string;
  /**
   * Marks the directory as used by kubeling, and lists the entries that existed before the first
   * start.
   */
  readonly claimFile: string;
  readonly selfCheckLogs: string;
  /** The directory for manifests of static pods. */
  readonly manifests: string;
  /** The kubelet's root directory. */
  readonly rootDir: string;
  readonly podLogs: string;
  readonly log: string;
  /**
   * The directory with the data of the embedded API: its store, its certificate authority, and the
   * issued credentials.
   */
  readonly api: string;
  /** The admin kubeconfig; only its owner may read it. */
  readonly kubeconfig: string;
}

export function dataDirectoryAt(dataDir: string): DataDirectory {
  return {
    dataDir,
    lockFile: join(dataDir, 'up.lock'),
    stateFile: join(dataDir, 'up.json'),
    claimFile: join(dataDir, 'home.json'),
    selfCheckLogs: join(dataDir, 'self-check'),
    manifests: join(dataDir, 'manifests'),
    rootDir: join(dataDir, 'kubelet'),
    podLogs: join(dataDir, 'logs'),
    log: join(dataDir, 'kubeling.log'),
    api: join(dataDir, 'api'),
    kubeconfig: join(dataDir, 'kubeconfig'),
  };
}

/**
 * Returns the path of the token file, below the kubelet's root directory. Every request over
 * loopback except for health needs this token, which changes at each start.
 */
export function tokenFile(rootDir: string): string {
  return join(rootDir, 'loopback-token');
}

/**
 * Returns the path of the file with the kubelet's loopback port, below its root directory. The file
 * of a previous run may be stale.
 */
export function portFile(rootDir: string): string {
  return join(rootDir, 'loopback-port');
}

/**
 * Opens the data directory and creates it if it is missing. Resolves symbolic links once, so that a
 * directory has a unique name. Rejects with HOME_UNUSABLE if another user could change it, because
 * manifests, sockets and keys in it give root privileges.
 */
export async function openDataDirectory(dataDir: string): Promise<DataDirectory> {
  const path = resolve(dataDir);
  try {
    // Other users may traverse the directory, because pods with user namespaces need access to
    // their root file systems; private files in it have their own permissions.
    await mkdir(path, { recursive: true, mode: 0o711 });
    return await trustedDataDirectory(await realpath(path));
  } catch (cause) {
    if (cause instanceof KubelingError) throw cause;
    throw new KubelingError('HOME_UNUSABLE', `Cannot use the data directory ${path}`, { cause });
  }
}

async function trustedDataDirectory(dataDir: string): Promise<DataDirectory> {
  const checked = dataDirectoryAt(dataDir);
  for (const directory of [
    dataDir,
    checked.manifests,
    checked.rootDir,
    checked.api,
    join(dataDir, 'containerd'),
  ]) {
    const why = await untrustedDirectory(directory);
    if (why === undefined) continue;
    throw new KubelingError(
      'HOME_UNUSABLE',
      `Cannot use the data directory ${dataDir}: ${why}. Use a directory that only root can change`,
    );
  }
  return checked;
}

/** Returns the data directory if it exists. Rejects with HOME_UNUSABLE if another user could have changed it. */
export async function findDataDirectory(dataDir: string): Promise<DataDirectory | undefined> {
  const path = await realpath(resolve(dataDir)).catch(() => undefined);
  return path === undefined ? undefined : await trustedDataDirectory(path);
}

/** State that "up" saves for "status" and "down". */
export interface UpState {
  readonly runtime: 'private' | 'machine';
  readonly endpoint: string;
  /** The endpoints of runtimes used before, which may still have pods of this data directory. */
  readonly earlier?: readonly string[] | undefined;
  /**
   * Whether this runtime ever passed the self-check. If so, it may have pods and must not be
   * replaced by another one.
   */
  readonly selfCheck?: 'passed' | undefined;
  /** The loopback port on which the kubelet listens; undefined before it listens. */
  readonly port?: number | undefined;
  /** The URL and kubeconfig of the embedded API; undefined without one. */
  readonly api?: { readonly url: string; readonly kubeconfig: string } | undefined;
}

export async function writeUpState(directory: DataDirectory, state: UpState): Promise<void> {
  await writeJsonAtomic(directory.stateFile, state, { mode: 0o600 });
}

/** Returns the endpoints of runtimes used before, which may have pods of this data directory. */
export function previousEndpoints(last: UpState | undefined, endpoint: string): readonly string[] {
  if (last === undefined) return [];
  const used = [...(last.earlier ?? []), ...(last.runtime === 'machine' ? [last.endpoint] : [])];
  return [...new Set(used)].filter((socket) => socket !== endpoint);
}

/** Reads the state; undefined if kubeling never ran in the directory or the state is unreadable. */
export async function readUpState(directory: DataDirectory): Promise<UpState | undefined> {
  return await readJsonFile(directory.stateFile, { check: asUpState }).catch(() => undefined);
}

function asUpState(value: unknown): UpState {
  const { runtime, endpoint, earlier, port, api, selfCheck } = value as Partial<UpState>;
  if ((runtime === 'private' || runtime === 'machine') && typeof endpoint === 'string') {
    const hasApi = typeof api?.url === 'string' && typeof api.kubeconfig === 'string';
    return {
      runtime,
      endpoint,
      earlier: Array.isArray(earlier) ? earlier.filter((item) => typeof item === 'string') : [],
      port: typeof port === 'number' ? port : undefined,
      // Earlier releases did not store the result of the self-check, but stored the port only after
      // the self-check had passed. So a stored port means that it passed.
      selfCheck: selfCheck === 'passed' || typeof port === 'number' ? 'passed' : undefined,
      ...(hasApi ? { api: { url: api.url, kubeconfig: api.kubeconfig } } : {}),
    };
  }
  throw new KubelingError('FILE_CORRUPT', 'it must contain a runtime and an endpoint');
}

export function requireRoot(command: string): void {
  if (process.getuid?.() === 0) return;
  throw new KubelingError(
    'NOT_ROOT',
    `Cannot run "kubeling ${command}": root privileges are required. Run it with sudo`,
  );
}
